import type { CellResult } from '../phases/measure-cell.ts'
import type { DiskTimes } from '../measure/disk.ts'
import type { PoolFacts } from '../load/protocol.ts'
import type { Scenario, ScenarioName } from '../scenarios.ts'
import type { SystemName } from '../systems/system.ts'
import { figureNames, ratio, type FigureName } from './figures.ts'
import type { Machine, Versions } from './machine.ts'

/** A whole run. */
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

export interface ScenarioReport {
  readonly name: ScenarioName
  readonly title: string
  readonly systems: readonly SystemReport[]
  /** How many times better the service is than each baseline. */
  readonly ratios: Partial<Record<SystemName, Partial<Record<FigureName, number>>>>
}

export type SystemReport = { readonly system: SystemName } & (
  | ({ readonly entries: PoolFacts } & CellResult)
  /** It could not be measured. */
  | { readonly error: string }
)

/** How the figures were measured, for those who read them. */
export const method: readonly string[] = [
  'Everything runs on this machine, the load generator included; Redis with appendfsync always; one system at a time, freshly started.',
  'Highest rate that drains: an open loop at a fixed rate for a whole window, in which the backlog (accepted less rows counted in ClickHouse) grew by less than 5 % of the rate and was stored at once afterwards; searched between what went through and what was accepted in a closed loop.',
  'Stored a second: the slope of the rows counted in ClickHouse in the last two thirds of that window.',
  'Disk: ten seconds of appends before everything else, two hundred a second, each on disk before the next. Whoever comes while one is on its way waits for its end at least: at the 99th percentile, that is the least that an ack could have taken in those ten seconds.',
  'Ack: from when a request was due (Poisson arrivals, sent every millisecond) to its 202, at half of that rate. In the burst, which is a closed loop, from when it was sent.',
  'Ack to queryable: probes of one entry, 20 a second, polled for in ClickHouse every 10 ms, at half of that rate.',
  'CPU: utime and stime from /proc, of all threads, from the first request at the highest rate until all was stored, by the entries accepted. Merges that come later are not in it. In a burst: the API over the burst, worker and ClickHouse over the drain, Redis over both.',
  'Peak RSS: VmHWM, set back before that window. In a burst: the API in the burst, the others in the drain.',
  'Cores: what programs that have no part in it took at the highest rate, and what the load generator took.',
  "Redis memory: used_memory's growth by the entries that wait, the worker being stopped; entries sent at half of the highest rate, in a burst as fast as they were taken.",
]

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
