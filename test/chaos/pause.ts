import { setTimeout } from 'node:timers/promises'

/** Resolves after so many milliseconds, or as soon as the signal is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await setTimeout(Math.max(0, ms), undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
}

/** What a promise gives, or an error when it takes longer: for calls to what may be dead. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  const done = new AbortController()
  const late = pause(ms, done.signal).then(() => {
    if (!done.signal.aborted) throw new Error(`${what} took longer than ${ms} ms`)
    return undefined as never
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    done.abort()
  }
}
