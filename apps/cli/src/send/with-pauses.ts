import { withTimeout } from '@sluice/runtime'

/**
 * Yields the values of an iteration, and `undefined` once whenever the next value has not come for a while.
 *
 * @param isWaiting whether the consumer wants to know
 */
export async function* withPauses<Value>(
  values: AsyncIterable<Value>,
  pauseMs: number,
  isWaiting: () => boolean,
): AsyncGenerator<Value | undefined> {
  const iterator = values[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = iterator.next()
      let isSettled = false
      const settled = next.then(
        () => (isSettled = true),
        () => (isSettled = true),
      )
      if (isWaiting()) {
        await withTimeout(settled, pauseMs).catch(() => undefined)
        if (!isSettled) yield undefined
      }
      const result = await next
      if (result.done === true) return
      yield result.value
    }
  } finally {
    await iterator.return?.()
  }
}
