import type { QueueNames, ShardCount } from '@sluice/queue'
import type { Logger, MonotonicClock } from '@sluice/runtime'
import { BatchDelivery, type BatchDeliveryDependencies } from './batch-delivery.ts'
import { BatchSplitter, type BatchSplitterDependencies } from './batch-splitter.ts'
import { BatchStages, type BatchStagesDependencies } from './batch-stages.ts'
import { Shard, type ShardOptions } from './shard.ts'

/** A new shard is served within this time. Rows of it wait this much longer, once. */
export const REFRESH_INTERVAL_MS = 5_000

type AllDependencies = ShardOptions &
  BatchDeliveryDependencies &
  BatchStagesDependencies &
  BatchSplitterDependencies

/** The queue of a shard and the records next to it. */
export type ShardQueue = Pick<AllDependencies, 'ledger' | 'consumer'>

/** What all shards of a worker share: without what `startShard` makes for each shard. */
export type ShardDependencies = Omit<
  AllDependencies,
  keyof ShardQueue | 'shard' | 'delivery' | 'stages' | 'insertByParts'
>

/**
 * Starts the delivery of one shard's queue. It shares nothing with other shards but the limits, so that a shard whose Redis is unavailable
 * does not block the others.
 *
 * @param shard its number, for events
 */
export function startShard(queue: ShardQueue, shard: number, dependencies: ShardDependencies): Shard {
  const shared = { ...dependencies, ...queue, shard }
  const stages = new BatchStages({
    ...shared,
    insertByParts: (batch, recovery) => new BatchSplitter(shared, batch, recovery).run(),
  })
  return new Shard({ ...shared, delivery: new BatchDelivery({ ...shared, stages }) })
}

type RunningShard = Pick<Shard, 'heldChunks' | 'stop'>

export interface ServedShardsOptions {
  readonly shards: Pick<ShardCount, 'names' | 'refresh'>
  readonly start: (names: QueueNames) => RunningShard
  readonly clock: Pick<MonotonicClock, 'sleep'>
  readonly logger: Logger
}

/**
 * The shards that this worker serves: the shards of its setting, and all others that were ever in use. The others are retired, or this worker has
 * an old setting. It learns of them from Redis, at the start and then every few seconds.
 */
export class ServedShards {
  readonly #options: ServedShardsOptions
  readonly #running = new Map<QueueNames, RunningShard>()
  readonly #stopping = new AbortController()

  constructor(options: ServedShardsOptions) {
    this.#options = options
  }

  /** Serves the shards of the setting at once, since Redis may be unavailable, and the others as soon as it responds. */
  start(): void {
    const { shards, start } = this.#options
    for (const names of shards.names) this.#running.set(names, start(names))
    void this.#follow()
  }

  /** The shards that are served now. */
  get names(): QueueNames[] {
    return [...this.#running.keys()]
  }

  get heldChunks(): number {
    return this.#running.values().reduce((sum, { heldChunks }) => sum + heldChunks, 0)
  }

  /** Resolves when everything that was fetched is delivered or returned. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#running.values().map((shard) => shard.stop()))
  }

  async #follow(): Promise<void> {
    const { clock, logger } = this.#options
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#refresh().catch((error: unknown) => logger.warn({ err: error }, 'retired shards not read'))
      await clock.sleep(REFRESH_INTERVAL_MS, signal)
    }
  }

  async #refresh(): Promise<void> {
    const { shards, start, logger } = this.#options
    await shards.refresh()
    // While Redis was unavailable, the worker may have been stopped.
    if (this.#stopping.signal.aborted) return
    for (const names of shards.names.slice(this.#running.size)) {
      logger.info({ shard: names.shard }, 'serving a shard above QUEUE_SHARDS')
      this.#running.set(names, start(names))
    }
  }
}
