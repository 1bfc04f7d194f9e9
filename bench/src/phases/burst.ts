import { acceptedPerS, type LoadResult } from '../load/protocol.ts'
import { type MeterReading, ProcessMeter } from '../measure/process-meter.ts'
import { redisUsedBytes } from '../measure/redis-info.ts'
import type { WorkerControl } from '../systems/system.ts'
import { drain, formatRate, type MeasurementContext, startPhase } from './context.ts'

export interface Burst {
  readonly load: LoadResult
  readonly reading: MeterReading
  /** Undefined for a system without a queue. */
  readonly queue: { readonly redisBytesPerEntry: number; readonly drain: Drain } | undefined
}

interface Drain {
  readonly entriesPerS: number
  /** From the start of the worker's process until everything was stored. */
  readonly durationMs: number
  /** The entries that were not stored yet when the worker was ready: `entriesPerS` and `reading` refer to them. */
  readonly entries: number
  readonly reading: MeterReading
}

/**
 * Sends as fast as entries are accepted while the worker is stopped, then starts the worker and lets it drain the queue.
 *
 * @param entriesMax ends the burst before its window does
 */
export async function measureBurst(
  context: MeasurementContext,
  connections: number,
  entriesMax: number | undefined,
): Promise<Burst> {
  await startPhase(context)
  const { system, load, windowMs } = context
  await system.worker?.stop()
  const before = await usedBytes(context)
  const meter = new ProcessMeter(system.pids())
  const result = await load.run({ loop: 'closed', connections, durationMs: windowMs, entriesMax })
  const reading = meter.read(result.cpuMs)
  context.log(`${result.accepted.toLocaleString('en')} accepted, ${formatRate(acceptedPerS(result))}`)
  if (system.worker === undefined || before === undefined) {
    await drain(context, result.accepted)
    return { load: result, reading, queue: undefined }
  }
  const redisBytesPerEntry = (((await usedBytes(context)) ?? before) - before) / result.accepted
  const drained = await measureDrain(context, system.worker, result.accepted)
  context.log(
    `${redisBytesPerEntry.toFixed(0)} bytes of Redis memory per entry, drained at ${formatRate(drained.entriesPerS)}`,
  )
  return { load: result, reading, queue: { redisBytesPerEntry, drain: drained } }
}

async function measureDrain(
  context: MeasurementContext,
  worker: WorkerControl,
  accepted: number,
): Promise<Drain> {
  const startedMs = performance.now()
  await worker.start()
  // The rate includes neither the start of the Node process nor the rows that were stored until then.
  const meter = new ProcessMeter(context.system.pids())
  const readyMs = performance.now()
  const entries = accepted - (await context.store.count())
  await drain(context, accepted)
  const endedMs = performance.now()
  return {
    entriesPerS: (entries / (endedMs - readyMs)) * 1_000,
    durationMs: endedMs - startedMs,
    entries,
    reading: meter.read(0),
  }
}

async function usedBytes({ system }: MeasurementContext): Promise<number | undefined> {
  return system.redisUrl === undefined ? undefined : redisUsedBytes(system.redisUrl)
}
