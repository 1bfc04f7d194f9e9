/** Waits until the promise is settled, but no longer than `ms`. Never rejects. */
export async function waitUpTo(ms: number, promise: Promise<unknown>): Promise<void> {
  const { promise: isLate, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  await Promise.race([promise.catch(() => undefined), isLate])
  clearTimeout(timer)
}
