/** Runs a task in an interval, first after one interval. A run that is late is not followed by another until it has ended. */
export class PeriodicTask {
  readonly #timer: NodeJS.Timeout

  /** @param run never rejects */
  constructor(intervalMs: number, run: () => Promise<void>) {
    let isRunning = false
    this.#timer = setInterval(() => {
      // While Redis does not answer, runs would pile up in the queue of its connection.
      if (isRunning) return
      isRunning = true
      void run().finally(() => (isRunning = false))
    }, intervalMs)
  }

  /** A run that has started is not stopped. */
  stop(): void {
    clearInterval(this.#timer)
  }
}
