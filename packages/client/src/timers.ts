export const HOUR_MS = 3_600_000

/** The longest delay that setTimeout supports. A longer one would end at once. */
const DELAY_MS_MAX = 2 ** 31 - 1

export type Timer = ReturnType<typeof setTimeout>

/** A timer that does not keep the process alive. */
export function startTimer(callback: () => void, delayMs: number): Timer {
  const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), DELAY_MS_MAX))
  unref(timer)
  return timer
}

/** Timers are objects in Node and Bun, and numbers in Deno and in browsers. A number in a browser keeps nothing alive. */
function unref(timer: unknown): void {
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function') {
    timer.unref()
    return
  }
  const { Deno } = globalThis as { Deno?: { unrefTimer?: (timer: unknown) => void } }
  Deno?.unrefTimer?.(timer)
}

/** Keeps the process alive until the promise is settled: everything else that the client waits for does not. */
export async function keepAliveUntil<Result>(promise: Promise<Result>): Promise<Result> {
  const timer = setInterval(() => undefined, DELAY_MS_MAX)
  try {
    return await promise
  } finally {
    clearInterval(timer)
  }
}
