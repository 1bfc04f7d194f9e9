import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { rows } from '../../tools/dashboards/rows.ts'
import { isAlert, metricsIn, readRules, readRuleTests, rulesOf } from './alert-rules.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string): Promise<string> => readFile(new URL(path, root), 'utf8')

const rules = rulesOf(await readRules())
const alerts = rules.filter(isAlert)
const recorded = new Set(rules.flatMap((rule) => (isAlert(rule) ? [] : [rule.record])))
const metricsPage = await read('docs/metrics.md')
const runbook = await read('docs/runbooks/alerts.md')

/** Whether docs/metrics.md has the metric, without the suffix of a histogram or by a name that ends in `*`. */
function isDocumented(metric: string): boolean {
  const names = [...metricsPage.matchAll(/`((?:sluice|nodejs|process)_[\w]+\*?)`/g)].map(
    ([, name = '']) => name,
  )
  const base = metric.replace(/_(?:bucket|sum|count)$/, '')
  return names.some((name) =>
    name.endsWith('*') ? metric.startsWith(name.slice(0, -1)) : name === metric || name === base,
  )
}

describe.each(alerts.map((rule) => [rule.alert, rule] as const))('%s', (name, rule) => {
  it('has a severity, a summary, a description, and nothing else', () => {
    expect(['page', 'ticket']).toContain(rule.labels['severity'])
    expect(Object.keys(rule.labels)).toEqual(['severity'])
    expect(Object.keys(rule.annotations).toSorted()).toEqual(['description', 'runbook_url', 'summary'])
  })

  it('links to the heading of its name in the runbook, which has its severity and its time', async () => {
    expect(rule.annotations['runbook_url']).toBe(`docs/runbooks/alerts.md#${name.toLowerCase()}`)
    const severity = rule.labels['severity'] === 'page' ? 'Page' : 'Ticket'
    const time = rule.for === undefined ? '' : `, after ${rule.for.replace('m', ' min')}`
    expect(runbook).toContain(`\n## ${name}\n\n**${severity}${time}.** `)
  })

  it('has a test in which it fires, and one in which it is silent', async () => {
    const checks = (await readRuleTests()).tests.flatMap(({ alert_rule_test: all = [] }) =>
      all.filter(({ alertname }) => alertname === name),
    )
    expect(checks.some((check) => 'exp_alerts' in check)).toBe(true)
    expect(checks.some((check) => !('exp_alerts' in check))).toBe(true)
  })
})

it('the runbook describes only alerts that exist', () => {
  const described = [...runbook.matchAll(/^## (Sluice\w+)$/gm)].map(([, name]) => name)
  expect(new Set(described)).toEqual(new Set(alerts.map(({ alert }) => alert)))
})

it('all metrics of rules and of the dashboard are documented or recorded', () => {
  const expressions = [
    ...rules.map(({ expr }) => expr),
    ...rows.flatMap(({ panels }) => panels.flatMap(({ queries }) => queries.map(({ expr }) => expr))),
  ]
  expect(expressions.length).toBeGreaterThan(80)
  const names = new Set(expressions.flatMap(metricsIn))
  expect(names.size).toBeGreaterThan(40)
  const unknown = [...names].filter((name) => name !== 'up' && !recorded.has(name) && !isDocumented(name))
  expect(unknown).toEqual([])
})
