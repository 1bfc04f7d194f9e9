import type { QueueNames, ShardCount } from '@sluice/queue'
import type { Logger, MonotonicClock } from '@sluice/runtime'
import type { RunningShard } from './start-shard.ts'

/** A new shard is served within this time. Rows of it wait this much longer, once. */
const REFRESH_INTERVAL_MS = 5_000

export interface ServedShardsOptions {
  readonly shards: Pick<ShardCount, 'names' | 'refresh' | 'isEmpty'>
  readonly start: (names: QueueNames) => RunningShard
  readonly clock: Pick<MonotonicClock, 'sleep'>
  readonly logger: Logger
}

/**
 * The shards that this worker serves: those of its setting, and all others that were ever in use. It learns of the others from Redis,
 * at the start and then every few seconds, and serves them from then on. They are retired, or this worker has an old setting.
 */
export class ServedShards {
  readonly #options: ServedShardsOptions
  readonly #running: RunningShard[] = []
  /** Shards beyond the setting that have not been found empty yet. */
  readonly #retired = new Set<QueueNames>()
  readonly #stopping = new AbortController()

  constructor(options: ServedShardsOptions) {
    this.#options = options
  }

  /** Serves the shards of the setting at once, since Redis may be unavailable, and the others as soon as it answers. */
  start(): void {
    const { shards, start } = this.#options
    for (const names of shards.names) this.#running.push(start(names))
    void this.#follow()
  }

  /** Those that are served now, with their names. */
  get served(): { readonly names: QueueNames; readonly running: RunningShard }[] {
    return this.#options.shards.names.flatMap((names, index) => {
      const running = this.#running[index]
      return running === undefined ? [] : [{ names, running }]
    })
  }

  get heldChunks(): number {
    return this.#running.reduce((sum, { heldChunks }) => sum + heldChunks, 0)
  }

  /** Resolves when everything that was fetched is delivered or returned. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#running.map((shard) => shard.stop()))
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
    for (const names of shards.names.slice(this.#running.length)) {
      logger.info({ shard: names.shard }, 'serving a shard above QUEUE_SHARDS')
      this.#running.push(start(names))
      this.#retired.add(names)
    }
    for (const names of this.#retired) {
      if (!(await shards.isEmpty(names))) continue
      logger.info({ shard: names.shard }, 'a shard above QUEUE_SHARDS is empty')
      this.#retired.delete(names)
    }
  }
}
