import { availableParallelism, cpus, totalmem } from 'node:os'
import type { Scenario } from './load/scenarios.ts'
import type { SystemName } from './systems.ts'

/** How a figure is displayed and compared. */
interface FigureSpec {
  readonly label: string
  readonly unit: string
  readonly digits: number
  /** Which direction is better. Undefined for figures that are not compared. */
  readonly better?: 'higher' | 'lower'
}

const rate = (label: string): FigureSpec => ({ label, unit: 'entries/s', digits: 0, better: 'higher' })
const ms = (label: string): FigureSpec => ({ label, unit: 'ms', digits: 1, better: 'lower' })
const cpu = (role: string): FigureSpec => ({
  label: `CPU ${role}`,
  unit: 'µs/entry',
  digits: 2,
  better: 'lower',
})
const rss = (role: string): FigureSpec => ({
  label: `peak RSS ${role}`,
  unit: 'MB',
  digits: 0,
  better: 'lower',
})

/** All figures, in display order. docs/performance.md says how each is measured. */
const figureSpecs = {
  capacityPerS: rate('highest sustained rate'),
  requestsPerS: { label: '… in requests', unit: 'requests/s', digits: 0, better: 'higher' },
  acceptedPerS: rate('accepted at that rate'),
  storedPerS: rate('stored at that rate'),
  saturatedPerS: rate('accepted when saturated'),
  saturatedStoredPerS: rate('… until all was stored'),
  saturatedCpuUs: { ...cpu('total'), label: '… CPU total' },
  ackP50Ms: ms('ack p50'),
  ackP99Ms: ms('ack p99'),
  ackP999Ms: ms('ack p99.9'),
  queryableP50Ms: ms('ack to queryable p50'),
  queryableP99Ms: ms('ack to queryable p99'),
  apiCpuUs: cpu('API'),
  workerCpuUs: cpu('worker'),
  redisCpuUs: cpu('Redis'),
  clickhouseCpuUs: cpu('ClickHouse'),
  totalCpuUs: cpu('total'),
  apiRssMb: rss('API'),
  workerRssMb: rss('worker'),
  redisRssMb: rss('Redis'),
  clickhouseRssMb: rss('ClickHouse'),
  redisBytesPerEntry: { label: 'Redis memory per queued entry', unit: 'bytes', digits: 0, better: 'lower' },
  connections: { label: 'connections', unit: '', digits: 0 },
  othersCores: { label: 'other programs', unit: 'cores', digits: 2 },
  generatorCores: { label: 'load generator', unit: 'cores', digits: 2 },
} as const satisfies Record<string, FigureSpec>

/** The figures that were measured. */
export type Figures = Partial<Record<keyof typeof figureSpecs, number | undefined>>

/** The result of one system under one scenario. */
export interface Measurement {
  readonly figures: Figures
  /** Conditions that may distort the figures. */
  readonly warnings: readonly string[]
}

export interface SystemReport extends Measurement {
  readonly system: SystemName
  readonly bytesPerEntry: number
}

export interface ScenarioReport {
  readonly scenario: Scenario
  /** Without the systems that could not be measured. */
  readonly systems: readonly SystemReport[]
}

/** The result of a whole run. */
export interface Report {
  readonly at: string
  readonly machine: string
  readonly clickhouse: string
  readonly redis: string
  readonly windowS: number
  readonly scenarios: readonly ScenarioReport[]
}

export function describeMachine(): string {
  const cpuModel = cpus()[0]?.model ?? 'unknown'
  const gigabytes = Math.round(totalmem() / 2 ** 30)
  return `${availableParallelism()} cores (${cpuModel}), ${gigabytes} GB, ${process.platform} ${process.arch}`
}

/** The printed report: one table per scenario, with figures in rows and systems and ratios in columns. */
export function formatReport({ at, machine, clickhouse, redis, windowS, scenarios }: Report): string {
  return [
    `${at}, ${machine}`,
    `Node ${process.version}, Redis ${redis}, ClickHouse ${clickhouse}, windows of ${windowS} s`,
    ...scenarios.flatMap((scenario) => ['', ...formatScenario(scenario)]),
    '',
  ].join('\n')
}

function formatScenario({ scenario, systems }: ScenarioReport): string[] {
  const [ours, ...others] = systems
  if (ours === undefined) return [`${scenario.name}: not measured`]
  const compared = ours.system === 'sluice' ? others : []
  const names = systems.map(({ system }) => system)
  const header = ['', '', ...names, ...compared.map(({ system }) => `× ${system}`)]
  const specs = Object.entries(figureSpecs) as [keyof Figures, FigureSpec][]
  const rows: string[][] = []
  for (const [name, spec] of specs) {
    const values = systems.map(({ figures }) => figures[name])
    if (values.every((value) => value === undefined)) continue
    const ratios = compared.map(({ figures }) => ratio(spec, ours.figures[name], figures[name]))
    const cells = [
      ...values.map((value) => formatNumber(value, spec.digits)),
      ...ratios.map((value) => formatNumber(value, 1)),
    ]
    rows.push([spec.label, spec.unit, ...cells])
  }
  return [
    `${scenario.name}: ${scenario.title}; ${Math.round(ours.bytesPerEntry)} bytes per entry`,
    ...alignColumns([header, ...rows]),
    ...systems.flatMap(({ system, warnings }) => warnings.map((warning) => `  ! ${system}: ${warning}`)),
  ]
}

/** How many times better `ours` is. Undefined if the two cannot be compared. */
function ratio({ better }: FigureSpec, ours = 0, theirs = 0): number | undefined {
  if (better === undefined || ours === 0 || theirs === 0) return undefined
  return better === 'higher' ? ours / theirs : theirs / ours
}

export function formatNumber(value: number | undefined, digits: number): string {
  return value?.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits }) ?? '–'
}

/** The first two columns are aligned left. The others are numbers, aligned right. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_cell, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  return rows.map((row) => {
    const cells = row.map((cell, column) => {
      const width = widths[column] ?? 0
      return column < 2 ? cell.padEnd(width) : cell.padStart(width)
    })
    return `  ${cells.join('  ')}`.trimEnd()
  })
}
