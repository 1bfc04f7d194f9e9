import { type Chunk, QueueUnavailableError } from '@sluice/queue'
import { ownedRows } from '@sluice/row-scanner'
import { ChunkWriter } from '../../apps/api/src/chunks/chunk-writer.ts'
import type { Link, SimulatedProcess } from './simulated-process.ts'
import type { SimulatedRedis } from './simulated-redis.ts'

/** `ChunkQueue` stores no add later than this after its deadline. */
const LATE_MAX_MS = 2_000
const RETRY_MS = 100

export interface SimulatedApiOptions {
  readonly process: SimulatedProcess
  readonly redis: SimulatedRedis
  readonly makeId: () => string
  readonly toRedis: Link
}

/** The API's own code from the moment at which the rows of a request are valid, in a simulated process. */
export class SimulatedApi {
  readonly #options: SimulatedApiOptions
  readonly #writer: ChunkWriter

  constructor(options: SimulatedApiOptions) {
    this.#options = options
    const { makeId, process } = options
    const queue = {
      add: (id: string, chunk: Chunk, deadlineMs: number) => this.#add(id, chunk, deadlineMs),
      addRecorded: () => Promise.reject(new Error('requests have no idempotency keys')),
    }
    this.#writer = new ChunkWriter({
      queues: [queue],
      makeId,
      records: { windowMs: 0, perProjectMax: 0 },
      monotonicMs: () => process.nowMs(),
    })
  }

  /** @returns whether the request got a 202. Never settles if the process dies. */
  async send(rows: readonly string[]): Promise<boolean> {
    try {
      await this.#writer.write(ownedRows(rows.length, rows.join('')))
      return true
    } catch (error) {
      if (error instanceof QueueUnavailableError) return false
      throw error
    }
  }

  async #add(chunkId: string, chunk: Chunk, deadlineMs: number): Promise<void> {
    const { process, redis, toRedis } = this.#options
    while (process.nowMs() < deadlineMs) {
      try {
        await process.request(
          `add ${chunkId}`,
          () => redis.add(chunkId, chunk, deadlineMs + LATE_MAX_MS),
          toRedis,
        )
        return
      } catch {
        await process.sleep(RETRY_MS)
      }
    }
    throw new QueueUnavailableError('Redis did not confirm the chunk in time')
  }
}
