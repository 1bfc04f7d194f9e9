import type { LoadResult } from '../load/protocol.ts'
import { type MeterReading, ProcessMeter } from '../measure/process-meter.ts'
import { QueryableProbe, type QueryableTimes } from '../measure/queryable-probe.ts'
import { redisUsedBytes } from '../measure/redis-info.ts'
import { drain, formatRate, type MeasurementContext, startPhase } from './context.ts'

export interface Latencies {
  readonly load: LoadResult
  readonly queryable: QueryableTimes
  readonly reading: MeterReading
}

/** Long enough for some ten thousand entries, short enough for a system that needs a kilobyte per entry. */
const QUEUE_FILL_MS_MAX = 4_000

/** Measures latencies at a rate that leaves the system headroom. */
export async function measureLatencies(
  context: MeasurementContext,
  connections: number,
  entriesPerS: number,
): Promise<Latencies> {
  await startPhase(context)
  const meter = new ProcessMeter(context.system.pids())
  const probe = new QueryableProbe({ ...context.system, format: context.scenario.format }, context.store)
  const probing = probe.run()
  // Awaited below. Until then a failed query must not become an unhandled rejection.
  probing.catch(() => undefined)
  const options = { loop: 'open', connections, durationMs: context.windowMs, entriesPerS } as const
  const load = await context.load.run(options).finally(() => probe.stop())
  const queryable = await probing
  await drain(context, load.accepted + queryable.probes)
  const reading = meter.read(load.cpuMs)
  context.log(
    `at ${formatRate(entriesPerS)}: acknowledged after ${load.latencyMs.p50.toFixed(1)} ms (p99 ${load.latencyMs.p99.toFixed(1)}), ` +
      `queryable ${queryable.p50Ms.toFixed(0)} ms later (p99 ${queryable.p99Ms.toFixed(0)})`,
  )
  return { load, queryable, reading }
}

/** @returns the bytes of Redis' memory that a queued entry takes, measured while the worker is stopped. Undefined without a queue in Redis */
export async function measureQueueMemory(
  context: MeasurementContext,
  connections: number,
  entriesPerS: number,
): Promise<number | undefined> {
  const { redisUrl, worker } = context.system
  if (redisUrl === undefined || worker === undefined) return undefined
  await startPhase(context)
  await worker.stop()
  const before = await redisUsedBytes(redisUrl)
  const durationMs = Math.min(QUEUE_FILL_MS_MAX, context.windowMs)
  const { accepted } = await context.load.run({ loop: 'open', connections, durationMs, entriesPerS })
  const after = await redisUsedBytes(redisUrl)
  await worker.start()
  await drain(context, accepted)
  const bytes = (after - before) / accepted
  context.log(`${bytes.toFixed(0)} bytes of Redis memory per queued entry`)
  return bytes
}
