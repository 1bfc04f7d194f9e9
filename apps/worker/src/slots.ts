import { HandBackError } from './persistence.ts'

/** Lets so many tasks run at once. Others wait for their turn, in the order in which they came. */
export class Slots {
  #free: number
  readonly #waiting: PromiseWithResolvers<void>[] = []

  /** @param signal aborted when nobody shall wait any more */
  constructor(count: number, signal: AbortSignal) {
    this.#free = count
    signal.addEventListener('abort', () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new HandBackError('stopping'))
    })
  }

  /** @throws HandBackError when the signal is aborted before it is the task's turn */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) {
      this.#free -= 1
    } else {
      const turn = Promise.withResolvers<void>()
      this.#waiting.push(turn)
      await turn.promise
    }
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next.resolve()
    }
  }
}
