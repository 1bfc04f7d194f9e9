import { type ELDHistogram, monitorEventLoopDelay } from 'node:perf_hooks'

/** Fifty samples a second. Node takes them with an internal timer, without running JavaScript. */
const RESOLUTION_MS = 20

/**
 * Measures how late the turns of the event loop start. It reports the median, because a single long turn or a single pause
 * of the process is not an overload.
 */
export class EventLoopDelay {
  readonly #histogram: ELDHistogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })

  start(): void {
    this.#histogram.enable()
  }

  stop(): void {
    this.#histogram.disable()
  }

  /** The median since the last call, in ms. */
  takeMs(): number {
    const medianMs = this.#histogram.percentile(50) / 1e6
    this.#histogram.reset()
    return Math.max(0, Math.round(medianMs - RESOLUTION_MS))
  }
}
