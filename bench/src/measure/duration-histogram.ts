import { createHistogram } from 'node:perf_hooks'

/** Two minutes: longer than every deadline of the benchmark. */
const DURATION_MAX_US = 120_000_000

/** Percentiles of durations in constant memory: whole microseconds, with three significant digits. */
export class DurationHistogram {
  readonly #us = createHistogram({ lowest: 1, highest: DURATION_MAX_US, figures: 3 })

  record(ms: number): void {
    const us = Math.round(ms * 1_000)
    this.#us.record(Math.min(DURATION_MAX_US, Math.max(1, us)))
  }

  /** @param percentile above 0, up to 100. @returns milliseconds; 0 if nothing was recorded */
  percentileMs(percentile: number): number {
    return this.#us.count === 0 ? 0 : this.#us.percentile(percentile) / 1_000
  }
}
