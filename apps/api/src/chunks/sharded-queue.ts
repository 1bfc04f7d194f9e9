import type { Chunk } from '@sluice/schema'
import { type ChunkQueue, QueueUnavailableError } from './chunk-queue.ts'

/** A shard that failed gets one chunk in so long to show that it is back, while there are others. */
const PASSED_OVER_MS = 5_000

interface Shard {
  readonly queue: Pick<ChunkQueue, 'add'>
  addsInFlight: number
  failedAtMs: number
}

/**
 * Spreads chunks over the queues of the shards: each goes to one that works, to the least busy of those, and to these in
 * turn. A chunk stays on its shard however often its add is tried, for the other shards would not know its id.
 */
export class ShardedQueue {
  readonly #shards: readonly Shard[]
  readonly #now: () => number
  #turn = 0

  /** @param now the clock of `performance.now()` */
  constructor(queues: readonly Pick<ChunkQueue, 'add'>[], now: () => number = () => performance.now()) {
    this.#shards = queues.map((queue) => ({
      queue,
      addsInFlight: 0,
      failedAtMs: Number.NEGATIVE_INFINITY,
    }))
    this.#now = now
  }

  /** As `ChunkQueue.add`. */
  async add(chunkId: string, chunk: Chunk, deadlineMs: number): Promise<void> {
    const shard = this.#choose()
    shard.addsInFlight += 1
    try {
      await shard.queue.add(chunkId, chunk, deadlineMs)
    } catch (error) {
      if (error instanceof QueueUnavailableError) shard.failedAtMs = this.#now()
      throw error
    } finally {
      shard.addsInFlight -= 1
    }
  }

  #choose(): Shard {
    const startMs = this.#now() - PASSED_OVER_MS
    const cost = ({ addsInFlight, failedAtMs }: Shard): number =>
      failedAtMs > startMs ? Number.MAX_SAFE_INTEGER : addsInFlight
    const inTurn = [...this.#shards.slice(this.#turn), ...this.#shards.slice(0, this.#turn)]
    const chosen = inTurn.reduce((best, shard) => (cost(shard) < cost(best) ? shard : best))
    this.#turn = (this.#shards.indexOf(chosen) + 1) % this.#shards.length
    return chosen
  }
}
