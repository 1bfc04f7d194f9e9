import { type ELDHistogram, monitorEventLoopDelay } from 'node:perf_hooks'

/** Fifty samples a second: Node takes them by a timer of its own, outside of JavaScript. */
const RESOLUTION_MS = 20

/**
 * How late this process's turns are. The median: one long turn, or a pause of the whole process among many turns, is no
 * overload.
 */
export class EventLoopDelay {
  readonly #histogram: ELDHistogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })

  start(): void {
    this.#histogram.enable()
  }

  stop(): void {
    this.#histogram.disable()
  }

  /** The median since the last call, ms. */
  takeMs(): number {
    const medianMs = this.#histogram.percentile(50) / 1e6
    this.#histogram.reset()
    return Math.max(0, Math.round(medianMs - RESOLUTION_MS))
  }
}
