import { type NewChunk, QueueUnavailableError, withReceiptFrom } from '@sluice/queue'
import { ownedRows } from '@sluice/row-scanner'
import { ChunkWriter } from '../../apps/api/src/chunks/chunk-writer.ts'
import { encodeBlock } from '../../packages/rows/test/support/encode-block.ts'
import type { Link, SimulatedProcess } from './simulated-process.ts'
import type { SimulatedRedis } from './simulated-redis.ts'

/** `ChunkQueue` stores no add later than this after its deadline. */
const LATE_MAX_MS = 2_000
const RETRY_MS = 100

/** Sends a request. @returns whether it got a 202. Never settles if the process dies. */
export type Send = (rows: readonly string[]) => Promise<boolean>

/** The API's own code from the moment at which the rows of a request are valid, in a simulated process. */
export function startSimulatedApi(
  process: SimulatedProcess,
  redis: SimulatedRedis,
  toRedis: Link,
  makeId: () => string,
): Send {
  const add = async (id: string, made: NewChunk | undefined, deadlineMs: number): Promise<undefined> => {
    if (made === undefined) throw new RangeError('requests have no idempotency keys')
    let chunk = made
    while (process.nowMs() < deadlineMs) {
      try {
        const sent = chunk
        const store = (): number | undefined => redis.add(id, sent, deadlineMs + LATE_MAX_MS)
        const admittedMs = await process.request(`add ${id}`, store, toRedis)
        if (admittedMs === undefined) return undefined
        chunk = withReceiptFrom(admittedMs, chunk)
      } catch {
        await process.sleep(RETRY_MS)
      }
    }
    throw new QueueUnavailableError('Redis did not confirm the chunk in time')
  }
  const writer = new ChunkWriter({
    queues: [{ add }],
    makeId,
    records: { windowMs: 0, perProjectMax: 0 },
    monotonicMs: () => process.nowMs(),
  })
  return async (rows) => {
    try {
      await writer.write(ownedRows(rows.length, encodeBlock(rows)))
      return true
    } catch (error) {
      if (error instanceof QueueUnavailableError) return false
      throw error
    }
  }
}
