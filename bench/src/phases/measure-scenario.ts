import { describeRejected, type LoadResult } from '../load/protocol.ts'
import { entriesPerRequest } from '../load/scenarios.ts'
import { type MeterReading, totalCpuMs, type Usage } from '../measure/process-meter.ts'
import type { Figures, Measurement } from '../report.ts'
import type { Roles } from '../systems.ts'
import { findCapacity, runTrial } from './capacity.ts'
import type { MeasurementContext } from './context.ts'
import { type Latencies, measureLatencies, measureQueueMemory } from './latencies.ts'
import { findConnections, saturate } from './saturation.ts'

/** Above this share of a core, the generator may limit the rate, because it has one thread. */
const GENERATOR_CORES_MAX = 0.8
/** Above this number of cores, other programs on the machine have distorted the figures. */
const OTHERS_CORES_MAX = 0.1
const MEGABYTE = 1024 * 1024

/** @param isProfiled whether to saturate the system for one window only, which is all that a CPU profile needs */
export async function measureScenario(
  context: MeasurementContext,
  isProfiled: boolean,
): Promise<Measurement> {
  const connections = await findConnections(context)
  const saturation = await saturate(context, connections)
  const base = {
    saturatedPerS: saturation.acceptedPerS,
    saturatedStoredPerS: saturation.endToEndPerS,
    saturatedCpuUs: saturation.cpuUsPerEntry,
    connections,
  }
  if (isProfiled)
    return { figures: base, warnings: ['profiling costs CPU time: do not compare these figures'] }
  const { ratePerS } = context
  if (ratePerS !== undefined) {
    // Without the queries for probes, which cost CPU time.
    const { storedPerS, load, reading } = await runTrial(context, connections, ratePerS)
    const latencies = await measureLatencies(context, connections, ratePerS)
    const usage = figuresOfUsage(reading.usage, load.accepted)
    return {
      figures: { ...base, storedPerS, ...figuresOfLatencies(latencies), ...usage },
      warnings: warnAbout('at the fixed rate', latencies),
    }
  }
  const best = await findCapacity(context, saturation)
  if (best === undefined) return { figures: base, warnings: ['no sustained rate was found'] }
  const { entriesPerS, acceptedPerS, storedPerS, load, reading, surplusRows } = best
  const half = await measureLatencies(context, connections, entriesPerS / 2)
  const figures = {
    ...base,
    capacityPerS: entriesPerS,
    requestsPerS: entriesPerS / entriesPerRequest(context.scenario),
    acceptedPerS,
    storedPerS,
    ...figuresOfLatencies(half),
    ...figuresOfUsage(reading.usage, load.accepted),
    redisBytesPerEntry: await measureQueueMemory(context, connections, entriesPerS / 2),
    othersCores: reading.othersCores,
    generatorCores: load.cpuMs / load.windowMs,
  }
  const warnings = [...warnAbout('at the highest sustained rate', best), ...warnAbout('at half of it', half)]
  if (surplusRows > 0) warnings.push(`${surplusRows} more rows than acknowledged entries`)
  return { figures, warnings }
}

function figuresOfLatencies({ load: { latencyMs }, queryable }: Latencies): Figures {
  return {
    ackP50Ms: latencyMs.p50,
    ackP99Ms: latencyMs.p99,
    ackP999Ms: latencyMs.p999,
    queryableP50Ms: queryable.p50Ms,
    queryableP99Ms: queryable.p99Ms,
  }
}

function figuresOfUsage(usage: Roles<Usage>, entries: number): Figures {
  const { api, worker, redis, clickhouse } = usage
  const perEntryUs = (cpuMs: number): number => (cpuMs * 1_000) / entries
  return {
    apiCpuUs: perEntryUs(api.cpuMs),
    workerCpuUs: perEntryUs(worker.cpuMs),
    redisCpuUs: perEntryUs(redis.cpuMs),
    clickhouseCpuUs: perEntryUs(clickhouse.cpuMs),
    totalCpuUs: perEntryUs(totalCpuMs(usage)),
    apiRssMb: api.peakRssBytes / MEGABYTE,
    workerRssMb: worker.peakRssBytes / MEGABYTE,
    redisRssMb: redis.peakRssBytes / MEGABYTE,
    clickhouseRssMb: clickhouse.peakRssBytes / MEGABYTE,
  }
}

function warnAbout(
  when: string,
  { load, reading }: { readonly load: LoadResult; readonly reading: MeterReading },
): string[] {
  const warnings: string[] = []
  if (reading.othersCores > OTHERS_CORES_MAX) {
    warnings.push(`${when}: other programs used ${reading.othersCores.toFixed(2)} cores`)
  }
  if (load.cpuMs > load.windowMs * GENERATOR_CORES_MAX) {
    warnings.push(`${when}: the load generator may be the bottleneck`)
  }
  const rejected = describeRejected(load)
  if (rejected !== '') warnings.push(`${when}: not every response was a 202: ${rejected}`)
  return warnings
}
