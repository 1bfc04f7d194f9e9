import { type MonotonicClock, processClock } from './timing.ts'

/** A promise did not settle in time. What it does later is ignored. */
export class TimeoutError extends Error {
  override name = 'TimeoutError'
}

/**
 * Settles like the promise, but not later than `ms` from now. Leaves no timer behind.
 *
 * @throws TimeoutError
 */
export async function withTimeout<T>(
  promise: Promise<T>,
  ms: number,
  clock: Pick<MonotonicClock, 'sleep'> = processClock,
): Promise<T> {
  const settled = new AbortController()
  try {
    const expired = clock.sleep(Math.max(0, ms), settled.signal).then(() => settled)
    const first = await Promise.race([promise, expired])
    if (first === settled) throw new TimeoutError(`no result within ${Math.round(ms)} ms`)
    return first as T
  } finally {
    // With a reason, Node creates no error.
    settled.abort('settled')
  }
}

/** Limits the number of tasks that run at the same time. Further tasks wait, first in, first out. */
export class Semaphore {
  #permits: number
  readonly #signal: AbortSignal
  readonly #waiting: PromiseWithResolvers<void>[] = []

  /** @param signal aborted when no task may wait any longer, for example because the process stops */
  constructor(permits: number, signal: AbortSignal) {
    this.#permits = permits
    this.#signal = signal
    signal.addEventListener('abort', () => {
      for (const { reject } of this.#waiting.splice(0)) reject(signal.reason)
    })
  }

  /** @throws the reason of the signal if it is aborted before the task starts */
  async run<T>(task: () => Promise<T>): Promise<T> {
    this.#signal.throwIfAborted()
    if (this.#permits > 0) {
      this.#permits -= 1
    } else {
      const permit = Promise.withResolvers<void>()
      this.#waiting.push(permit)
      await permit.promise
    }
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#permits += 1
      else next.resolve()
    }
  }
}
