/** Time that never goes back, and waits on it. An argument everywhere, so that tests can let it pass. */
export interface MonotonicClock {
  /** ms since any moment. */
  nowMs(): number
  /** Resolves after `ms`, or as soon as the signal is aborted. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The clock of this process. It may stop while the process is suspended. */
export const processClock: MonotonicClock = {
  nowMs: () => performance.now(),
  // `node:timers/promises` would create an error with a stack for each wait that is aborted: one for each chunk that is added.
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      if (signal?.aborted === true) end()
      else signal?.addEventListener('abort', end)
    }),
}

/** How long to wait before each retry of an operation that failed for a transient reason. */
export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/**
 * The wait after `attempt` failed attempts (1 or more). It doubles from `baseMs` up to `maxMs`. A random part of up to half
 * is subtracted, so that callers that failed together do not retry together.
 *
 * @param random 0 ≤ random < 1
 */
export function backoffMs(attempt: number, { baseMs, maxMs }: Backoff, random: number): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 30))
  return Math.round(full * (1 - random / 2))
}

/** Runs a task in an interval, first after one interval. No run begins before the last one has ended. */
export class PeriodicTask {
  readonly #run: () => Promise<void>
  readonly #timer: NodeJS.Timeout
  #isRunning = false

  /** @param run never rejects */
  constructor(intervalMs: number, run: () => Promise<void>) {
    this.#run = run
    this.#timer = setInterval(this.runNow, intervalMs)
  }

  /** Does not wait for the interval. */
  readonly runNow = (): void => {
    // While Redis does not reply, runs would pile up in the queue of its connection.
    if (this.#isRunning) return
    this.#isRunning = true
    void this.#run().finally(() => (this.#isRunning = false))
  }

  /** A run that has started is not stopped. */
  stop(): void {
    clearInterval(this.#timer)
  }
}

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/**
 * Describes how far a clock is from another one: `40 days behind`, or `1 hour ahead of`.
 *
 * @param skewMs positive if the clock is ahead of the other
 */
export function describeSkew(skewMs: number): string {
  const absoluteMs = Math.abs(skewMs)
  const [name, ms] = units.find(([, unitMs]) => absoluteMs >= unitMs) ?? units[3]
  const count = Math.round(absoluteMs / ms)
  return `${count} ${name}${count === 1 ? '' : 's'} ${skewMs < 0 ? 'behind' : 'ahead of'}`
}
