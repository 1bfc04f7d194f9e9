import type { Chunk } from './chunk.ts'
import { type ChunkQueue, QueueUnavailableError } from './chunk-queue.ts'

/** A shard that failed gets one chunk per interval as a probe, while other shards work. */
const PROBE_INTERVAL_MS = 5_000

interface Shard {
  readonly queue: Pick<ChunkQueue, 'add'>
  readonly index: number
  addsInFlight: number
  failedAtMs: number
}

/**
 * Distributes chunks over the shards. Of the shards that work, each chunk goes to the least busy one; equally busy shards take
 * turns. All attempts to add a chunk go to the same shard, because no other shard knows its id.
 */
export class ShardedQueue {
  readonly #shards: readonly Shard[]
  readonly #monotonicMs: () => number
  #turn = 0

  constructor(
    queues: readonly Pick<ChunkQueue, 'add'>[],
    monotonicMs: () => number = () => performance.now(),
  ) {
    this.#shards = queues.map((queue, index) => ({
      queue,
      index,
      addsInFlight: 0,
      failedAtMs: Number.NEGATIVE_INFINITY,
    }))
    this.#monotonicMs = monotonicMs
  }

  /** See `ChunkQueue.add`. @returns the index of the shard that has the chunk */
  async add(chunkId: string, chunk: Chunk, deadlineMs: number): Promise<number> {
    const shard = this.#choose()
    shard.addsInFlight += 1
    try {
      await shard.queue.add(chunkId, chunk, deadlineMs)
      return shard.index
    } catch (error) {
      if (error instanceof QueueUnavailableError) shard.failedAtMs = this.#monotonicMs()
      throw error
    } finally {
      shard.addsInFlight -= 1
    }
  }

  #choose(): Shard {
    const failedSinceMs = this.#monotonicMs() - PROBE_INTERVAL_MS
    const cost = ({ addsInFlight, failedAtMs }: Shard): number =>
      failedAtMs > failedSinceMs ? Number.MAX_SAFE_INTEGER : addsInFlight
    const inTurn = [...this.#shards.slice(this.#turn), ...this.#shards.slice(0, this.#turn)]
    const chosen = inTurn.reduce((best, shard) => (cost(shard) < cost(best) ? shard : best))
    this.#turn = (this.#shards.indexOf(chosen) + 1) % this.#shards.length
    return chosen
  }
}
