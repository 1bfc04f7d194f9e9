import { createRequire } from 'node:module'
import { availableParallelism, cpus, totalmem } from 'node:os'
import type { PoolFacts } from '../load/protocol.ts'
import type { Scenario, ScenarioName } from '../load/scenarios.ts'
import type { DiskTimes } from '../measure/disk.ts'
import { type FigureName, figureNames, type Figures, figureSpecs } from '../phases/figures.ts'
import type { Measurement } from '../phases/measure-scenario.ts'
import type { SystemName } from '../systems/system.ts'

/** The result of a whole run. */
export interface Report {
  readonly at: string
  readonly machine: Machine
  readonly disk: DiskTimes
  readonly versions: Versions
  readonly windowS: number
  readonly corpus: boolean
  readonly method: readonly string[]
  readonly scenarios: readonly ScenarioReport[]
}

/** The machine on which the figures were measured. */
export interface Machine {
  readonly cores: number
  readonly cpu: string
  readonly memoryGb: number
  readonly platform: string
}

/** The versions of the software. The versions of the servers are known once they have run. */
export interface Versions {
  readonly node: string
  readonly bullmq: string
  readonly redis?: string
  readonly clickhouse?: string
}

export interface ScenarioReport {
  readonly name: ScenarioName
  readonly title: string
  readonly systems: readonly SystemReport[]
  /** How many times better Sluice is than each baseline. */
  readonly ratios: Partial<Record<SystemName, Partial<Record<FigureName, number>>>>
}

export type SystemReport = { readonly system: SystemName } & (
  | ({ readonly entries: PoolFacts } & Measurement)
  /** The measurement failed. */
  | { readonly error: string }
)

/** How the figures were measured, for readers of the report. */
export const method: readonly string[] = [
  'Everything runs on this machine, including the load generator. Redis runs with appendfsync always. One system runs at a time, freshly started.',
  'Highest sustained rate: an open loop sends at a fixed rate for a whole window. The rate is sustained if the backlog (accepted entries minus rows counted in ClickHouse) grows by less than 5 % of the rate and drains right after the window. The search is bounded by the end-to-end rate and the accepted rate of a closed loop.',
  'Stored at that rate: the slope of the rows counted in ClickHouse over the last two thirds of that window.',
  'Disk: ten seconds of appends before any load, two hundred a second, each on disk before the next one starts. A request that arrives during an append waits at least until the append ends. The 99th percentile of this wait is a lower bound for the p99 of acks in those ten seconds.',
  'Ack: from when a request was due (Poisson arrivals, sent every millisecond) until its 202, at half of the highest sustained rate, or at the rate of --rate. In the burst, which is a closed loop, from when the request was sent.',
  'Ack to queryable: 20 probes a second of one entry each, polled for in ClickHouse every 10 ms, at the same rate.',
  'CPU: utime and stime of all threads from /proc, from the first request at the highest sustained rate (or at that of --rate) until everything was stored, per accepted entry. Later merges are not included. In a burst: the API during the burst, worker and ClickHouse during the drain, Redis during both.',
  'Peak RSS: VmHWM, reset before that window. In a burst: the API during the burst, the others during the drain.',
  'Cores: CPU used by unrelated programs, and by the load generator, at the highest sustained rate.',
  'Redis memory: growth of used_memory per queued entry while the worker is stopped. Entries are sent at half of the highest sustained rate; in a burst, as fast as they are accepted.',
]

export function describeMachine(): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    memoryGb: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
  }
}

export function describeVersions(): Versions {
  const { version: bullmq } = createRequire(import.meta.url)('bullmq/package.json') as { version: string }
  return { node: process.version, bullmq }
}

export function compare(scenario: Scenario, systems: readonly SystemReport[]): ScenarioReport {
  const ours = systems.find(({ system }) => system === 'sluice')
  const ratios: ScenarioReport['ratios'] = {}
  for (const theirs of systems) {
    if (theirs === ours || ours === undefined || 'error' in ours || 'error' in theirs) continue
    const pairs = figureNames.flatMap((name) => {
      const value = ratio(name, ours.figures, theirs.figures)
      return value === undefined ? [] : [[name, value]]
    })
    ratios[theirs.system] = Object.fromEntries(pairs)
  }
  return { name: scenario.name, title: scenario.title, systems, ratios }
}

/** How many times better `ours` is than `theirs`. Undefined if the two cannot be compared. */
function ratio(name: FigureName, ours: Figures, theirs: Figures): number | undefined {
  const { better } = figureSpecs[name]
  const [a, b] = [ours[name], theirs[name]]
  if (better === undefined || a === undefined || b === undefined || a === 0 || b === 0) return undefined
  return better === 'higher' ? a / b : b / a
}
