import { setTimeout as delay } from 'node:timers/promises'
import type { Progress } from '../load/protocol.ts'
import type { Store } from '../measure/store.ts'

/** Often enough for a slope over a few seconds. A count costs ClickHouse about a millisecond of CPU time. */
const COUNT_INTERVAL_MS = 200

/** A count at a point in time. */
interface Sample {
  /** Milliseconds since the epoch. */
  readonly atMs: number
  readonly count: number
}

/** Records how many entries are accepted and stored while load runs. */
export class BacklogWatch {
  readonly #store: Store
  readonly #accepted: Sample[] = []
  readonly #stored: Sample[] = []
  readonly #stopping = new AbortController()
  readonly #polling: Promise<void>

  constructor(store: Store) {
    this.#store = store
    this.#polling = this.#poll()
    // `stop` awaits it. Until then a failed query must not become an unhandled rejection.
    this.#polling.catch(() => undefined)
  }

  /** Callback for the progress of the load. */
  readonly recordAccepted = ({ atMs, accepted }: Progress): void => {
    this.#accepted.push({ atMs, count: accepted })
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#polling
  }

  /**
   * Entries accepted and stored per second in the last two thirds of a window. In the first third storing lags behind,
   * because the first batches have to fill.
   */
  steadyRates(startedAtMs: number, windowMs: number): { acceptedPerS: number; storedPerS: number } {
    const isSteady = ({ atMs }: Sample): boolean =>
      atMs >= startedAtMs + windowMs / 3 && atMs <= startedAtMs + windowMs
    return {
      acceptedPerS: growthPerS(this.#accepted.filter(isSteady)),
      storedPerS: growthPerS(this.#stored.filter(isSteady)),
    }
  }

  async #poll(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const sentAtMs = performance.timeOrigin + performance.now()
      const count = await this.#store.count()
      const answeredAtMs = performance.timeOrigin + performance.now()
      this.#stored.push({ atMs: (sentAtMs + answeredAtMs) / 2, count })
      await delay(COUNT_INTERVAL_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
    }
  }
}

/** The slope of the least-squares line through the samples; 0 for fewer than two samples. */
function growthPerS(samples: readonly Sample[]): number {
  const meanAtMs = samples.reduce((sum, { atMs }) => sum + atMs, 0) / samples.length
  const meanCount = samples.reduce((sum, { count }) => sum + count, 0) / samples.length
  let covariance = 0
  let variance = 0
  for (const { atMs, count } of samples) {
    covariance += (atMs - meanAtMs) * (count - meanCount)
    variance += (atMs - meanAtMs) ** 2
  }
  return variance === 0 ? 0 : (covariance / variance) * 1_000
}
