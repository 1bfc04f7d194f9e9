// Needs prometheus: `npm run test:release -- monitoring`.
import { eventually } from '@sluice/harness'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rows } from '../../tools/dashboards/rows.ts'
import { isAlert, metricsIn, readRules, rulesOf } from './alert-rules.ts'
import { JOB, MonitoredInstallation } from './monitored-installation.ts'

/** A test with several hundred queries. */
const TEST_DEADLINE_MS = 90_000

/** Queries that have no data without a fault, and the store that must fail for it. */
const onlyInFaults: Readonly<Record<string, 'redis' | 'clickhouse'>> = {
  'Requests: Adding a chunk to the queue: p50 of errors': 'redis',
  'Inserts: Duration of inserts: p50 of errors': 'clickhouse',
  'Inserts: Errors of ClickHouse: {{code}}': 'clickhouse',
  'Inserts: Retries and repairs: retry: {{step}}': 'clickhouse',
}

const rules = rulesOf(await readRules())
const recorded = new Set(rules.flatMap((rule) => (isAlert(rule) ? [] : [rule.record])))
const panelQueries = rows.flatMap((row) =>
  row.panels.flatMap(({ title, queries }) =>
    queries.map(({ expr, legend }) => ({ name: `${row.title}: ${title}: ${legend}`, expr: resolved(expr) })),
  ),
)

/** What Grafana replaces. */
function resolved(expression: string): string {
  return expression.replaceAll('$job', JOB).replaceAll('$__rate_interval', '15s')
}

/** The series that an expression selects, with their matchers. */
function selectorsIn(expression: string): readonly string[] {
  return metricsIn(expression).flatMap(
    (metric) => expression.match(new RegExp(`\\b${metric}\\b(?:\\{[^}]*\\})?`, 'g')) ?? [],
  )
}

/** The names of the series of a metric. */
function seriesOf(metric: string, type: string): readonly string[] {
  return type === 'histogram' ? [`${metric}_bucket`, `${metric}_sum`, `${metric}_count`] : [metric]
}

let monitored: MonitoredInstallation

beforeAll(async () => {
  monitored = await MonitoredInstallation.start()
})

afterAll(() => monitored?.stop())

/** The queries without any number, other than those that only a fault can have. */
async function withoutData(queries: readonly { name: string; expr: string }[]): Promise<string[]> {
  const results = await Promise.all(
    queries.map(async ({ name, expr }) => {
      const samples = await monitored.prometheus.query(expr)
      return samples.some(({ value }) => !Number.isNaN(value)) ? undefined : name
    }),
  )
  return results.filter((name) => name !== undefined)
}

describe('under load', () => {
  it(
    'every panel of the dashboard has data, except those that need a fault',
    async () => {
      await eventually(async () =>
        expect(new Set(await withoutData(panelQueries))).toEqual(new Set(Object.keys(onlyInFaults))),
      )
    },
    TEST_DEADLINE_MS,
  )

  it(
    'every recording rule, and all series that alerts select, have data',
    async () => {
      const selectors = rules.flatMap((rule) =>
        (isAlert(rule) ? selectorsIn(rule.expr) : [rule.record]).map((expr) => ({
          name: `${isAlert(rule) ? rule.alert : rule.record}: ${expr}`,
          expr,
        })),
      )
      expect(selectors.length).toBeGreaterThan(rules.length)
      await eventually(async () => expect(await withoutData(selectors)).toEqual([]))
    },
    TEST_DEADLINE_MS,
  )

  it(
    'Prometheus evaluates every rule without errors, and no alert fires',
    async () => {
      await eventually(async () => {
        const statuses = await monitored.prometheus.rules()
        expect(statuses.map(({ health, lastError }) => lastError ?? health)).toEqual(
          Array.from({ length: rules.length }, () => 'ok'),
        )
        expect(await monitored.prometheus.firing()).toEqual(new Set())
      })
    },
    TEST_DEADLINE_MS,
  )

  it('rules and panels use only metrics that a process exports', async () => {
    const { opsUrls } = monitored.installation
    const pages = await Promise.all(
      Object.values(opsUrls).map(async (url) => (await fetch(`${url}/metrics`)).text()),
    )
    const types = pages.join('\n').matchAll(/^# TYPE (\w+) (\w+)$/gm)
    const exported = new Set([...types].flatMap(([, name = '', type = '']) => seriesOf(name, type)))
    const used = [...rules, ...panelQueries].flatMap(({ expr }) => metricsIn(expr))
    const missing = used.filter((name) => name !== 'up' && !recorded.has(name) && !exported.has(name))
    expect([...new Set(missing)]).toEqual([])
  })
})

describe.each(['redis', 'clickhouse'] as const)('while %s is frozen', (store) => {
  const names = Object.keys(onlyInFaults).filter((name) => onlyInFaults[name] === store)
  const queries = panelQueries.filter(({ name }) => names.includes(name))

  beforeAll(() => monitored.installation.processes[store].kill('SIGSTOP'))
  afterAll(() => monitored.installation.processes[store].kill('SIGCONT'))

  it(
    'the panels that need this fault have data',
    async () => {
      expect(queries).toHaveLength(names.length)
      await eventually(async () => expect(await withoutData(queries)).toEqual([]))
    },
    TEST_DEADLINE_MS,
  )
})
