import { RequeueError } from './retrier.ts'

/** Limits the number of tasks that run at the same time. Others wait, in the order in which they arrived. */
export class Semaphore {
  #permits: number
  readonly #signal: AbortSignal
  readonly #waiting: PromiseWithResolvers<void>[] = []

  /** @param signal aborted when the process stops and no task may wait any longer */
  constructor(permits: number, signal: AbortSignal) {
    this.#permits = permits
    this.#signal = signal
    signal.addEventListener('abort', () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new RequeueError('stopping'))
    })
  }

  /** Tasks that may start now. */
  get free(): number {
    return this.#permits
  }

  /** Tasks that wait. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** @throws RequeueError if the signal is aborted before the task starts */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#signal.aborted) throw new RequeueError('stopping')
    if (this.#permits > 0) {
      this.#permits -= 1
    } else {
      const turn = Promise.withResolvers<void>()
      this.#waiting.push(turn)
      await turn.promise
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
