import type { LoadResult } from '../load/protocol.ts'
import { totalCpuMs, type Reading, type Usage } from '../measure/process-meter.ts'
import type { Figures } from '../report/figures.ts'
import { entriesPerRequest } from '../scenarios.ts'
import type { Roles } from '../systems/system.ts'
import { measureBurst, type Burst } from './burst.ts'
import { findCapacity } from './capacity.ts'
import type { Cell } from './cell.ts'
import { measureHalfLoad } from './half-load.ts'
import { measureQueueMemory } from './queue-memory.ts'
import { findConnections, saturate } from './saturation.ts'
import type { Trial } from './trial.ts'

/** What one system did under one scenario. */
export interface CellResult {
  readonly figures: Figures
  /** The measurements that the figures are made of. */
  readonly details: unknown
  /** What to know before believing the figures. */
  readonly warnings: readonly string[]
}

/** Above this share of a core the generator, which has one thread, may be what limits the rate. */
const GENERATOR_CORES_MAX = 0.8
/** Above this, other programs on the machine have made the figures worse than they are. */
const OTHERS_CORES_MAX = 0.1
const MEGABYTE = 1024 * 1024

/** @param burstEntriesMax ends a burst before its window does */
export async function measureCell(cell: Cell, burstEntriesMax: number | undefined): Promise<CellResult> {
  const connections = await findConnections(cell)
  return cell.scenario.burst
    ? reportBurst(await measureBurst(cell, connections, burstEntriesMax), connections)
    : measureSteady(cell, connections)
}

/** Only takes the system to its limit for a window: what a profile needs, and no more. */
export async function measureForProfile(cell: Cell): Promise<CellResult> {
  const connections = await findConnections(cell)
  const saturation = await saturate(cell, connections)
  return {
    figures: { saturatedPerS: saturation.acceptedPerS, connections },
    details: { saturation },
    warnings: ['profiling costs CPU time: these are not the figures to compare'],
  }
}

async function measureSteady(cell: Cell, connections: number): Promise<CellResult> {
  const saturation = await saturate(cell, connections)
  const { best, trials } = await findCapacity(cell, saturation)
  const details = { saturation, trials }
  const base = { saturatedPerS: saturation.acceptedPerS, connections }
  if (best === undefined) return { figures: base, details, warnings: ['no rate was found that drains'] }
  const half = await measureHalfLoad(cell, connections, best.entriesPerS / 2)
  const redisBytesPerEntry = await measureQueueMemory(cell, connections, best.entriesPerS / 2)
  const { latencyMs } = half.load
  const figures = withoutUndefined({
    ...base,
    ...figuresOfTrial(best),
    requestsPerS: best.entriesPerS / entriesPerRequest(cell.scenario),
    ackP50Ms: latencyMs.p50,
    ackP99Ms: latencyMs.p99,
    ackP999Ms: latencyMs.p999,
    queryableP50Ms: half.queryable.p50Ms,
    queryableP99Ms: half.queryable.p99Ms,
    redisBytesPerEntry,
  })
  const warnings = [...warnAbout('at the highest rate', best), ...warnAbout('at half of it', half)]
  if (best.surplusRows > 0) warnings.push(`${best.surplusRows} rows more than were acknowledged`)
  return { figures, details: { ...details, half }, warnings }
}

function figuresOfTrial({ entriesPerS, acceptedPerS, storedPerS, taken, load }: Trial): Figures {
  return {
    capacityPerS: entriesPerS,
    acceptedPerS,
    storedPerS,
    ...figuresOfUsage(taken.usage, load.accepted),
    othersCores: taken.othersCores,
    generatorCores: load.cpuMs / load.windowMs,
  }
}

function peakMb(used: Usage | undefined): number | undefined {
  return used && used.peakRssBytes / MEGABYTE
}

function figuresOfUsage(usage: Roles<Usage>, entries: number): Figures {
  const us = (used: Usage | undefined): number | undefined => used && (used.cpuMs * 1_000) / entries
  const { api, worker, redis, clickhouse } = usage
  return withoutUndefined({
    apiCpuUs: us(api),
    workerCpuUs: us(worker),
    redisCpuUs: us(redis),
    clickhouseCpuUs: us(clickhouse),
    totalCpuUs: (totalCpuMs(usage) * 1_000) / entries,
    apiRssMb: peakMb(api),
    workerRssMb: peakMb(worker),
    redisRssMb: peakMb(redis),
    clickhouseRssMb: peakMb(clickhouse),
  })
}

/** The API's work is that of the burst; the others' is that of the drain, where there is one. */
function reportBurst({ load, taken, queue }: Burst, connections: number): CellResult {
  const taking = figuresOfUsage(taken.usage, load.accepted)
  const draining = queue === undefined ? {} : figuresOfUsage(queue.drain.taken.usage, queue.drain.entries)
  const { redisCpuUs: takingRedisUs = 0, apiCpuUs, apiRssMb } = taking
  const { redisCpuUs: drainingRedisUs = 0, workerCpuUs = 0, clickhouseCpuUs = 0 } = draining
  const ofBoth: Figures =
    queue === undefined
      ? taking
      : withoutUndefined({
          ...draining,
          apiCpuUs,
          apiRssMb,
          redisCpuUs: takingRedisUs + drainingRedisUs,
          totalCpuUs: (apiCpuUs ?? 0) + takingRedisUs + drainingRedisUs + workerCpuUs + clickhouseCpuUs,
        })
  const figures = withoutUndefined({
    ...ofBoth,
    burstPerS: (load.acceptedInWindow / load.windowMs) * 1_000,
    drainPerS: queue?.drain.entriesPerS,
    drainS: queue && queue.drain.durationMs / 1_000,
    ackP50Ms: load.latencyMs.p50,
    ackP99Ms: load.latencyMs.p99,
    ackP999Ms: load.latencyMs.p999,
    redisBytesPerEntry: queue?.redisBytesPerEntry,
    connections,
    generatorCores: load.cpuMs / load.windowMs,
  })
  const warnings = warnAbout('in the burst', { load, taken })
  if (queue !== undefined) warnings.push(...warnAboutOthers('in the drain', queue.drain.taken))
  return { figures, details: { load, taken, queue }, warnings }
}

function warnAbout(
  when: string,
  { load, taken }: { readonly load: LoadResult; readonly taken: Reading },
): string[] {
  const warnings = warnAboutOthers(when, taken)
  if (load.cpuMs > load.windowMs * GENERATOR_CORES_MAX) {
    warnings.push(`${when}: the load generator may be the bottleneck`)
  }
  const refused = Object.entries(load.refused).map(([status, count]) => `${count} × ${status}`)
  if (refused.length > 0) warnings.push(`${when}: not every answer was a 202: ${refused.join(', ')}`)
  return warnings
}

function warnAboutOthers(when: string, { othersCores }: Reading): string[] {
  return othersCores > OTHERS_CORES_MAX
    ? [`${when}: other programs took ${othersCores.toFixed(2)} cores`]
    : []
}

function withoutUndefined(figures: { readonly [Name in keyof Figures]?: number | undefined }): Figures {
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== undefined))
}
