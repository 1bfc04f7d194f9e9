import { settled } from './simulated-runtime.ts'

interface Timer {
  readonly atMs: number
  readonly fire: () => void
}

/** Time that passes only when nothing else can happen. Timers of the same moment fire in the order in which they were set. */
export class SimulatedTime {
  /** The earliest one is the last. */
  readonly #timers: Timer[] = []
  #nowMs = 0

  get nowMs(): number {
    return this.#nowMs
  }

  after(ms: number, fire: () => void): void {
    const atMs = this.#nowMs + Math.max(0, ms)
    const later = this.#timers.findLastIndex((timer) => timer.atMs > atMs)
    this.#timers.splice(later + 1, 0, { atMs, fire })
  }

  /** Resolves after `ms`, or as soon as the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve()
    return new Promise((resolve) => {
      const end = (): void => {
        signal?.removeEventListener('abort', end)
        resolve()
      }
      this.after(ms, end)
      signal?.addEventListener('abort', end)
    })
  }

  /** Lets time pass until `isDone`. @returns whether it is done; false if `limitMs` is over, or nothing can happen any more */
  async runUntil(isDone: () => boolean, limitMs: number): Promise<boolean> {
    await settled()
    while (!isDone()) {
      const next = this.#timers.at(-1)
      if (next === undefined || next.atMs > limitMs) return false
      this.#timers.pop()
      this.#nowMs = next.atMs
      next.fire()
      await settled()
    }
    return true
  }
}
