/**
 * Waits for a promise until the signal is aborted. A race against one promise for all calls would keep each of them in memory.
 *
 * @returns what the promise resolves with, or `aborted`. The promise may be settled later: the caller must handle its rejection
 */
export async function unlessAborted<Result>(
  promise: Promise<Result>,
  signal: AbortSignal,
): Promise<Result | 'aborted'> {
  let onAbort: (() => void) | undefined
  const aborted = new Promise<'aborted'>((resolve) => {
    onAbort = () => resolve('aborted')
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort)
  }
}
