import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves after `ms`, or as soon as the signal is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(Math.max(0, ms), undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
}

/** Settles like the promise, but rejects after `ms`: for calls to a process that may be dead. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`${what} took longer than ${ms} ms`)), ms)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * How long a test waits for an event. A busy machine takes many times as long as an idle one, and only a test that fails waits this long. It is below
 * the timeout of a test, 240 s, so that the test reports what has not happened. A test whose claim is a time measures it.
 */
export const PATIENCE_MS = 120_000

/** Repeats `check` until it does not throw, and returns its result. Throws its last error after two minutes. */
export async function eventually<T>(check: () => Promise<T>): Promise<T> {
  const deadlineMs = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > deadlineMs) throw error
      await sleep(50)
    }
  }
}
