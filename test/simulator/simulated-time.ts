import { settled } from './simulated-runtime.ts'

interface Timer {
  readonly atMs: number
  readonly order: number
  readonly fire: () => void
}

/** Time that passes only when nothing else can happen. Timers of the same moment fire in the order in which they were set. */
export class SimulatedTime {
  /** A binary heap: the earliest timer is the first. */
  readonly #timers: Timer[] = []
  #nowMs = 0
  #order = 0

  get nowMs(): number {
    return this.#nowMs
  }

  after(ms: number, fire: () => void): void {
    this.#order += 1
    this.#push({ atMs: this.#nowMs + Math.max(0, ms), order: this.#order, fire })
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

  /**
   * Lets time pass until `isDone`.
   *
   * @returns whether it is done; false if `limitMs` is over, or nothing can happen any more
   */
  async runUntil(isDone: () => boolean, limitMs: number): Promise<boolean> {
    await settled()
    while (!isDone()) {
      const next = this.#timers[0]
      if (next === undefined || next.atMs > limitMs) return false
      this.#pop()
      this.#nowMs = next.atMs
      next.fire()
      await settled()
    }
    return true
  }

  #push(timer: Timer): void {
    const timers = this.#timers
    let index = timers.push(timer) - 1
    for (
      let parent = (index - 1) >> 1;
      index > 0 && this.#isBefore(index, parent);
      parent = (index - 1) >> 1
    ) {
      this.#swap(index, parent)
      index = parent
    }
  }

  #pop(): void {
    const timers = this.#timers
    const last = timers.pop()
    if (last === undefined || timers.length === 0) return
    timers[0] = last
    for (let index = 0; ;) {
      let least = index
      for (const child of [2 * index + 1, 2 * index + 2])
        if (child < timers.length && this.#isBefore(child, least)) least = child
      if (least === index) return
      this.#swap(index, least)
      index = least
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [left, right] = [this.#timers[a], this.#timers[b]]
    if (left === undefined || right === undefined) return false
    return left.atMs === right.atMs ? left.order < right.order : left.atMs < right.atMs
  }

  #swap(a: number, b: number): void {
    const [left, right] = [this.#timers[a], this.#timers[b]]
    if (left === undefined || right === undefined) return
    this.#timers[a] = right
    this.#timers[b] = left
  }
}
