import type { LoadResult } from '../load/protocol.ts'
import { ProcessMeter, type Reading } from '../measure/process-meter.ts'
import { redisUsedBytes } from '../measure/redis-memory.ts'
import type { WorkerControl } from '../systems/system.ts'
import { type Cell, drain, perS } from './cell.ts'

export interface Burst {
  readonly load: LoadResult
  readonly taken: Reading
  /** Undefined for a system without a queue. */
  readonly queue: { readonly redisBytesPerEntry: number; readonly drain: Drain } | undefined
}

export interface Drain {
  readonly entriesPerS: number
  /** From the worker's start until all was stored. */
  readonly durationMs: number
  /** What `taken` is for: the entries that were not stored yet when the worker was ready. */
  readonly entries: number
  readonly taken: Reading
}

/**
 * Sends as fast as it is taken while the worker is stopped, then starts the worker and lets it drain.
 *
 * @param entriesMax ends the burst before its window does
 */
export async function measureBurst(
  cell: Cell,
  connections: number,
  entriesMax: number | undefined,
): Promise<Burst> {
  cell.signal.throwIfAborted()
  const { system, store, load, windowMs } = cell
  await store.clear()
  await system.worker?.stop()
  const before = await usedBytes(cell)
  const meter = new ProcessMeter(system.pids())
  const result = await load.run({ loop: 'closed', connections, durationMs: windowMs, entriesMax })
  const taken = meter.read(result.cpuMs)
  cell.note(
    `${result.accepted.toLocaleString('en')} accepted, ${perS((result.acceptedInWindow / result.windowMs) * 1_000)}`,
  )
  if (system.worker === undefined || before === undefined) {
    await drain(cell, result.accepted)
    return { load: result, taken, queue: undefined }
  }
  const redisBytesPerEntry = (((await usedBytes(cell)) ?? before) - before) / result.accepted
  const drained = await measureDrain(cell, system.worker, result.accepted)
  cell.note(
    `${redisBytesPerEntry.toFixed(0)} bytes of Redis an entry, drained at ${perS(drained.entriesPerS)}`,
  )
  return { load: result, taken, queue: { redisBytesPerEntry, drain: drained } }
}

async function measureDrain(cell: Cell, worker: WorkerControl, accepted: number): Promise<Drain> {
  const startedMs = performance.now()
  await worker.start()
  // The start of a Node process is no part of the rate, nor are the rows that were stored meanwhile.
  const meter = new ProcessMeter(cell.system.pids())
  const readyMs = performance.now()
  const entries = accepted - (await cell.store.count())
  await drain(cell, accepted)
  const endedMs = performance.now()
  return {
    entriesPerS: (entries / (endedMs - readyMs)) * 1_000,
    durationMs: endedMs - startedMs,
    entries,
    taken: meter.read(0),
  }
}

async function usedBytes({ system }: Cell): Promise<number | undefined> {
  return system.redisUrl === undefined ? undefined : redisUsedBytes(system.redisUrl)
}
