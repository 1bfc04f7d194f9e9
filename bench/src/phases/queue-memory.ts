import { redisUsedBytes } from '../measure/redis-memory.ts'
import { type Cell, drain } from './cell.ts'

/** Long enough for some ten thousand entries, short enough for a system that needs a kilobyte for each. */
const FILL_MS_MAX = 4_000

/**
 * Measures what an entry in the queue takes in Redis' memory, the worker being stopped.
 *
 * @returns bytes an entry; undefined for a system without a queue
 */
export async function measureQueueMemory(
  cell: Cell,
  connections: number,
  entriesPerS: number,
): Promise<number | undefined> {
  const { redisUrl, worker } = cell.system
  if (redisUrl === undefined || worker === undefined) return undefined
  cell.signal.throwIfAborted()
  await cell.store.clear()
  await worker.stop()
  const before = await redisUsedBytes(redisUrl)
  const durationMs = Math.min(FILL_MS_MAX, cell.windowMs)
  const { accepted } = await cell.load.run({ loop: 'open', connections, durationMs, entriesPerS })
  const after = await redisUsedBytes(redisUrl)
  await worker.start()
  await drain(cell, accepted)
  const bytes = (after - before) / accepted
  cell.note(`${bytes.toFixed(0)} bytes of Redis an entry that waits`)
  return bytes
}
