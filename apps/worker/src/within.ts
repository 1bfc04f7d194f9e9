import type { MonotonicClock } from '@sluice/runtime'

/** Settles like the promise, or resolves with 'late' after `ms`. What the promise does after that is ignored. */
export async function within<T>(
  ms: number,
  promise: Promise<T>,
  clock: Pick<MonotonicClock, 'sleep'>,
): Promise<T | 'late'> {
  const timer = new AbortController()
  promise.catch(() => undefined)
  try {
    return await Promise.race([promise, clock.sleep(ms, timer.signal).then(() => 'late' as const)])
  } finally {
    timer.abort()
  }
}
