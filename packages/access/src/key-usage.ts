import type { ApiKeys } from '@sluice/projects'
import type { Logger } from '@sluice/runtime'

export const usageLimits = {
  /**
   * How often uses are persisted, in ms. A process that is killed loses the uses since the last time. `LAST USED` is less than a minute
   * behind, also if Redis rejects one write.
   */
  writeIntervalMs: 25_000,
  /** As many as there are cached keys: 2 MB, and 20 ms of Redis for each write. When there are as many, they are persisted at once. */
  keysMax: 10_000,
} as const

/**
 * Records when keys were last used: in memory at each request, and in the registry twice a minute. Uses that cannot be
 * persisted are kept until the next time; no request waits for that.
 */
export class KeyUsage {
  readonly #keys: Pick<ApiKeys, 'recordUses'>
  readonly #logger: Logger
  /** The last use of each key, ms since 1970. */
  #usedMs = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(keys: Pick<ApiKeys, 'recordUses'>, logger: Logger) {
    this.#keys = keys
    this.#logger = logger
  }

  recordUse(keyHash: string, wallMs: number): void {
    const before = this.#usedMs.size
    this.#keep(keyHash, wallMs)
    if (before < usageLimits.keysMax && this.#usedMs.size === usageLimits.keysMax) void this.write()
  }

  /** Persists the recorded uses at each interval, until `close`. */
  start(): void {
    this.#timer = setInterval(() => void this.write(), usageLimits.writeIntervalMs).unref()
  }

  /** Persists the recorded uses. One write is in flight at a time. Never rejects. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeNow())
    return this.#writing
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.write()
  }

  #keep(keyHash: string, wallMs: number): void {
    if (this.#usedMs.size < usageLimits.keysMax || this.#usedMs.has(keyHash))
      this.#usedMs.set(keyHash, wallMs)
  }

  async #writeNow(): Promise<void> {
    const used = this.#usedMs
    if (used.size === 0) return
    this.#usedMs = new Map()
    try {
      await this.#keys.recordUses(used)
    } catch (error) {
      this.#logger.warn({ err: error, keys: used.size }, 'cannot persist the last uses of keys')
      for (const [keyHash, usedMs] of used) if (!this.#usedMs.has(keyHash)) this.#keep(keyHash, usedMs)
    }
  }
}
