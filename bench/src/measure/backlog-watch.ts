import { setTimeout as delay } from 'node:timers/promises'
import type { Progress } from '../load/protocol.ts'
import { growthPerS, type Sample } from './rates.ts'
import type { Store } from './store.ts'

/** Often enough for a slope over a few seconds; a count costs ClickHouse about a millisecond of CPU time. */
const COUNT_INTERVAL_MS = 200

/** Watches how what is stored follows what is accepted, while load runs. */
export class BacklogWatch {
  readonly #store: Store
  readonly #accepted: Sample[] = []
  readonly #stored: Sample[] = []
  readonly #stopping = new AbortController()
  readonly #polling: Promise<void>

  constructor(store: Store) {
    this.#store = store
    this.#polling = this.#poll()
    // It is awaited at the end; until then a failed query is no crash.
    this.#polling.catch(() => undefined)
  }

  /** To be told how the load goes on. */
  readonly accept = ({ atMs, accepted }: Progress): void => {
    this.#accepted.push({ atMs, value: accepted })
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#polling
  }

  /**
   * Entries accepted and stored a second in the last two thirds of a window: in the first one, what is stored starts
   * later than what is accepted, because batches have to fill.
   */
  steadyRates(startedAtMs: number, windowMs: number): { acceptedPerS: number; storedPerS: number } {
    const steady = ({ atMs }: Sample): boolean =>
      atMs >= startedAtMs + windowMs / 3 && atMs <= startedAtMs + windowMs
    return {
      acceptedPerS: growthPerS(this.#accepted.filter(steady)),
      storedPerS: growthPerS(this.#stored.filter(steady)),
    }
  }

  async #poll(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const sentAtMs = performance.timeOrigin + performance.now()
      const value = await this.#store.count()
      const answeredAtMs = performance.timeOrigin + performance.now()
      this.#stored.push({ atMs: (sentAtMs + answeredAtMs) / 2, value })
      await delay(COUNT_INTERVAL_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
    }
  }
}
