import type { Registry } from '@sluice/projects'
import type { Logger } from '@sluice/runtime'

export const usageLimits = {
  /** How often uses are written down, ms. A process that is killed forgets those since the last time. */
  writeIntervalMs: 60_000,
  /** As many as there are cached keys: 2 MB, and 20 ms of Redis a minute. Further ones wait for the next minute. */
  keysMax: 10_000,
} as const

/**
 * When keys were last used: remembered here with each request, written down about once a minute for the keys that were
 * used. What cannot be written waits for the next time; nobody else waits for it.
 */
export class KeyUsage {
  readonly #registry: Pick<Registry, 'noteKeysUsed'>
  readonly #logger: Logger
  #usedMs = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(registry: Pick<Registry, 'noteKeysUsed'>, logger: Logger) {
    this.#registry = registry
    this.#logger = logger
  }

  /** @param usedMs ms since 1970 */
  note(keyHash: string, usedMs: number): void {
    if (this.#usedMs.size < usageLimits.keysMax || this.#usedMs.has(keyHash))
      this.#usedMs.set(keyHash, usedMs)
  }

  /** Writes down what there is, each interval until it is closed. */
  start(): void {
    this.#timer = setInterval(() => void this.write(), usageLimits.writeIntervalMs).unref()
  }

  /** Writes down what there is, one write at a time. Never rejects. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeNow())
    return this.#writing
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.write()
  }

  async #writeNow(): Promise<void> {
    const used = this.#usedMs
    if (used.size === 0) return
    this.#usedMs = new Map()
    try {
      await this.#registry.noteKeysUsed(used)
    } catch (error) {
      this.#logger.warn({ err: error, keys: used.size }, 'uses of keys not written down')
      for (const [keyHash, usedMs] of used) if (!this.#usedMs.has(keyHash)) this.note(keyHash, usedMs)
    }
  }
}
