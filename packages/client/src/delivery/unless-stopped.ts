import { deferred } from '../deferred.ts'
import type { Stop } from './stop.ts'

/**
 * Waits for a promise until the stop. A race against one promise for all calls would keep each of them in memory.
 *
 * @returns what the promise resolves with, or `stopped`. The promise may be settled later: the caller must handle its rejection
 */
export async function unlessStopped<Result>(
  promise: Promise<Result>,
  stop: Pick<Stop, 'subscribe'>,
): Promise<Result | 'stopped'> {
  const { promise: stopped, resolve } = deferred<'stopped'>()
  const unsubscribe = stop.subscribe(() => resolve('stopped'))
  try {
    return await Promise.race([promise, stopped])
  } finally {
    unsubscribe()
  }
}
