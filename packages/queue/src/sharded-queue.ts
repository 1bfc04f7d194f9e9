import type { ChunkQueue } from './chunk-queue.ts'
import { type FoundRecord, QueueUnavailableError } from './recorded-add.ts'

/** A shard that failed gets one chunk per interval as a probe, while other shards work. */
const PROBE_INTERVAL_MS = 5_000

interface Shard {
  readonly queue: Pick<ChunkQueue, 'add'>
  readonly index: number
  addsInFlight: number
  failedAtMs: number
}

/**
 * Distributes chunks over the shards. Of the shards that work, each chunk goes to the least busy one; equally busy shards
 * alternate. All attempts to add a chunk go to the same shard, because no other shard knows its id.
 */
export class ShardedQueue {
  readonly #shards: readonly Shard[]
  readonly #monotonicMs: () => number
  /** The shard that is the first choice for the next chunk. */
  #next = 0

  constructor(queues: readonly Shard['queue'][], monotonicMs: () => number) {
    this.#shards = queues.map((queue, index) => ({ queue, index, addsInFlight: 0, failedAtMs: -Infinity }))
    this.#monotonicMs = monotonicMs
  }

  /**
   * Adds to a shard, or to any if it is undefined: see `ChunkQueue.add`.
   *
   * @returns the index of the shard, and what Redis found instead of storing the records
   */
  async addTo(
    index: number | undefined,
    ...add: Parameters<ChunkQueue['add']>
  ): Promise<{ readonly shard: number; readonly found: readonly FoundRecord[] | undefined }> {
    const shard = (index === undefined ? undefined : this.#shards[index]) ?? this.#choose()
    shard.addsInFlight += 1
    try {
      return { shard: shard.index, found: await shard.queue.add(...add) }
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
    const inOrder = [...this.#shards.slice(this.#next), ...this.#shards.slice(0, this.#next)]
    const chosen = inOrder.reduce((best, shard) => (cost(shard) < cost(best) ? shard : best))
    this.#next = (chosen.index + 1) % this.#shards.length
    return chosen
  }
}
