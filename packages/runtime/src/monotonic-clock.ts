import { setTimeout } from 'node:timers/promises'

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
  sleep: async (ms, signal) => {
    await setTimeout(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
  },
}
