import { acceptedPerS, describeRejected, type LoadResult } from '../load/protocol.ts'
import { entriesPerRequest } from '../load/scenarios.ts'
import { type MeterReading, totalCpuMs, type Usage } from '../measure/process-meter.ts'
import type { Roles } from '../systems/system.ts'
import { type Burst, measureBurst } from './burst.ts'
import { findCapacity, type Trial } from './capacity.ts'
import type { MeasurementContext } from './context.ts'
import type { Figures } from './figures.ts'
import { type Latencies, measureLatencies, measureQueueMemory } from './latencies.ts'
import { findConnections, saturate } from './saturation.ts'

/** The result of one system under one scenario. */
export interface Measurement {
  readonly figures: Figures
  /** The raw data behind the figures. */
  readonly details: unknown
  /** Conditions that may distort the figures. */
  readonly warnings: readonly string[]
}

/** Above this share of a core, the generator may limit the rate, because it has one thread. */
const GENERATOR_CORES_MAX = 0.8
/** Above this number of cores, other programs on the machine have distorted the figures. */
const OTHERS_CORES_MAX = 0.1
const MEGABYTE = 1024 * 1024

/** @param burstEntriesMax ends a burst before its window does */
export async function measureScenario(
  context: MeasurementContext,
  burstEntriesMax: number | undefined,
): Promise<Measurement> {
  const connections = await findConnections(context)
  return context.scenario.burst
    ? summarizeBurst(await measureBurst(context, connections, burstEntriesMax), connections)
    : measureSteady(context, connections)
}

/** Saturates the system for one window, which is all that a CPU profile needs. */
export async function measureForProfile(context: MeasurementContext): Promise<Measurement> {
  const connections = await findConnections(context)
  const saturation = await saturate(context, connections)
  return {
    figures: { saturatedPerS: saturation.acceptedPerS, connections },
    details: { saturation },
    warnings: ['profiling costs CPU time: do not compare these figures'],
  }
}

async function measureSteady(context: MeasurementContext, connections: number): Promise<Measurement> {
  const saturation = await saturate(context, connections)
  const base = { saturatedPerS: saturation.acceptedPerS, connections }
  const { ratePerS } = context
  if (ratePerS !== undefined) {
    const latencies = await measureLatencies(context, connections, ratePerS)
    const { usage } = latencies.reading
    const figures = {
      ...base,
      ...figuresOfLatencies(latencies),
      ...figuresOfUsage(usage, latencies.load.accepted),
    }
    return {
      figures,
      details: { saturation, latencies },
      warnings: warnAbout('at the fixed rate', latencies),
    }
  }
  const { best, trials } = await findCapacity(context, saturation)
  const details = { saturation, trials }
  if (best === undefined) return { figures: base, details, warnings: ['no sustained rate was found'] }
  const half = await measureLatencies(context, connections, best.entriesPerS / 2)
  const redisBytesPerEntry = await measureQueueMemory(context, connections, best.entriesPerS / 2)
  const figures = withoutUndefined({
    ...base,
    ...figuresOfTrial(best),
    requestsPerS: best.entriesPerS / entriesPerRequest(context.scenario),
    ...figuresOfLatencies(half),
    redisBytesPerEntry,
  })
  const warnings = [...warnAbout('at the highest sustained rate', best), ...warnAbout('at half of it', half)]
  if (best.surplusRows > 0) warnings.push(`${best.surplusRows} more rows than acknowledged entries`)
  return { figures, details: { ...details, half }, warnings }
}

function figuresOfLatencies({ load: { latencyMs }, queryable }: Latencies): Figures {
  return withoutUndefined({
    ackP50Ms: latencyMs.p50,
    ackP99Ms: latencyMs.p99,
    ackP999Ms: latencyMs.p999,
    queryableP50Ms: queryable.p50Ms,
    queryableP99Ms: queryable.p99Ms,
  })
}

function figuresOfTrial(trial: Trial): Figures {
  const { entriesPerS, storedPerS, reading, load } = trial
  return {
    capacityPerS: entriesPerS,
    acceptedPerS: trial.acceptedPerS,
    storedPerS,
    ...figuresOfUsage(reading.usage, load.accepted),
    othersCores: reading.othersCores,
    generatorCores: load.cpuMs / load.windowMs,
  }
}

function peakMb(usage: Usage | undefined): number | undefined {
  return usage && usage.peakRssBytes / MEGABYTE
}

function figuresOfUsage(usage: Roles<Usage>, entries: number): Figures {
  const cpuUs = (used: Usage | undefined): number | undefined => used && (used.cpuMs * 1_000) / entries
  const { api, worker, redis, clickhouse } = usage
  return withoutUndefined({
    apiCpuUs: cpuUs(api),
    workerCpuUs: cpuUs(worker),
    redisCpuUs: cpuUs(redis),
    clickhouseCpuUs: cpuUs(clickhouse),
    totalCpuUs: (totalCpuMs(usage) * 1_000) / entries,
    apiRssMb: peakMb(api),
    workerRssMb: peakMb(worker),
    redisRssMb: peakMb(redis),
    clickhouseRssMb: peakMb(clickhouse),
  })
}

/** The API's figures come from the burst. With a queue, worker and ClickHouse are measured in the drain, Redis in both. */
function summarizeBurst({ load, reading, queue }: Burst, connections: number): Measurement {
  const sending = figuresOfUsage(reading.usage, load.accepted)
  const draining = queue === undefined ? {} : figuresOfUsage(queue.drain.reading.usage, queue.drain.entries)
  const { redisCpuUs: sendingRedisUs = 0, apiCpuUs, apiRssMb } = sending
  const { redisCpuUs: drainingRedisUs = 0, workerCpuUs = 0, clickhouseCpuUs = 0 } = draining
  const usage: Figures =
    queue === undefined
      ? sending
      : withoutUndefined({
          ...draining,
          apiCpuUs,
          apiRssMb,
          redisCpuUs: sendingRedisUs + drainingRedisUs,
          totalCpuUs: (apiCpuUs ?? 0) + sendingRedisUs + drainingRedisUs + workerCpuUs + clickhouseCpuUs,
        })
  const figures = withoutUndefined({
    ...usage,
    burstPerS: acceptedPerS(load),
    drainPerS: queue?.drain.entriesPerS,
    drainS: queue && queue.drain.durationMs / 1_000,
    ackP50Ms: load.latencyMs.p50,
    ackP99Ms: load.latencyMs.p99,
    ackP999Ms: load.latencyMs.p999,
    redisBytesPerEntry: queue?.redisBytesPerEntry,
    connections,
    generatorCores: load.cpuMs / load.windowMs,
  })
  const warnings = warnAbout('in the burst', { load, reading })
  if (queue !== undefined) warnings.push(...warnAboutOthers('in the drain', queue.drain.reading))
  return { figures, details: { load, reading, queue }, warnings }
}

function warnAbout(
  when: string,
  { load, reading }: { readonly load: LoadResult; readonly reading: MeterReading },
): string[] {
  const warnings = warnAboutOthers(when, reading)
  if (load.cpuMs > load.windowMs * GENERATOR_CORES_MAX) {
    warnings.push(`${when}: the load generator may be the bottleneck`)
  }
  const rejected = describeRejected(load)
  if (rejected !== '') warnings.push(`${when}: not every answer was a 202: ${rejected}`)
  return warnings
}

function warnAboutOthers(when: string, { othersCores }: MeterReading): string[] {
  return othersCores > OTHERS_CORES_MAX
    ? [`${when}: other programs used ${othersCores.toFixed(2)} cores`]
    : []
}

function withoutUndefined(figures: { readonly [Name in keyof Figures]?: number | undefined }): Figures {
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== undefined))
}
