import type { DiskTimes } from '../measure/disk.ts'
import { type FigureName, figureNames, figureSpecs } from '../phases/figures.ts'
import type { Report, ScenarioReport, SystemReport } from './report.ts'

const MISSING = '–'

/** The report as text: one table per scenario, with figures in rows and systems and ratios in columns. */
export function formatReport({
  at,
  machine,
  disk,
  versions,
  windowS,
  corpus,
  method,
  scenarios,
}: Report): string {
  const { cores, cpu, memoryGb, platform } = machine
  const { node, bullmq, redis = MISSING, clickhouse = MISSING } = versions
  return [
    `${at}, ${cores} cores (${cpu}), ${memoryGb} GB, ${platform}`,
    `Node ${node}, Redis ${redis}, ClickHouse ${clickhouse}, BullMQ ${bullmq}`,
    formatDisk(disk),
    `windows of ${windowS} s, messages from ${corpus ? 'log files' : 'templates'}`,
    ...scenarios.flatMap((scenario) => ['', ...formatScenario(scenario)]),
    ...formatOtlpRatios(scenarios),
    '',
    ...method.map((line) => `- ${line}`),
    '',
  ].join('\n')
}

function formatDisk({ appendBytes, appendP50Ms, appendP99Ms, waitP99Ms }: DiskTimes): string {
  return (
    `disk without load: an append of ${appendBytes / 1_000} KB takes ${appendP50Ms.toFixed(1)} ms (p99 ${appendP99Ms.toFixed(1)}); ` +
    `lower bound for the p99 of acks: ${waitP99Ms.toFixed(1)} ms`
  )
}

function formatScenario(scenario: ScenarioReport): string[] {
  const { name, title, systems, ratios } = scenario
  const baselines = systems.map(({ system }) => system).filter((system) => ratios[system] !== undefined)
  const header = ['', '', ...systems.map(({ system }) => system), ...baselines.map((system) => `× ${system}`)]
  const rowOf = (figure: FigureName): string[] => [
    figureSpecs[figure].label,
    figureSpecs[figure].unit,
    ...systems.map((system) => formatValue(valueOf(system, figure), figureSpecs[figure].digits)),
    ...baselines.map((system) => formatValue(ratios[system]?.[figure], 1)),
  ]
  const measured = figureNames.filter((figure) =>
    systems.some((system) => valueOf(system, figure) !== undefined),
  )
  const rows = measured.map((figure) => rowOf(figure))
  return [
    `${name}: ${title}${describeEntries(systems)}`,
    ...alignColumns([header, ...rows]),
    ...notes(systems),
  ]
}

/** What OTLP costs the API compared with JSON, if both were measured. */
function formatOtlpRatios(scenarios: readonly ScenarioReport[]): string[] {
  const json = scenarios.find(({ name }) => name === 'batch-100')
  const jsonUs = json && apiCpuUs(json)
  if (jsonUs === undefined) return []
  return scenarios.flatMap((scenario) => {
    const otlpUs = scenario.name.startsWith('otlp') ? apiCpuUs(scenario) : undefined
    return otlpUs === undefined
      ? []
      : [`CPU API per entry, ${scenario.name} / batch-100: ${(otlpUs / jsonUs).toFixed(2)}`]
  })
}

function apiCpuUs({ systems }: ScenarioReport): number | undefined {
  const sluice = systems.find(({ system }) => system === 'sluice')
  return sluice && valueOf(sluice, 'apiCpuUs')
}

function describeEntries(systems: readonly SystemReport[]): string {
  const measured = systems.find((each) => 'entries' in each)
  return measured === undefined ? '' : `; ${Math.round(measured.entries.bytesPerEntry)} bytes per entry`
}

function notes(systems: readonly SystemReport[]): string[] {
  return systems.flatMap((each) => {
    if ('error' in each) return [`  ! ${each.system} was not measured: ${each.error}`]
    return each.warnings.map((warning) => `  ! ${each.system}: ${warning}`)
  })
}

function valueOf(system: SystemReport, figure: FigureName): number | undefined {
  return 'error' in system ? undefined : system.figures[figure]
}

function formatValue(value: number | undefined, digits: number): string {
  if (value === undefined) return MISSING
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** The first two columns are text, aligned left. The others are numbers, aligned right. */
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
