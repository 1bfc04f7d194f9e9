/** What distinguishes a browser from other runtimes, of the global object. */
export interface GlobalScope {
  readonly window?: { readonly document?: unknown } | undefined
  readonly importScripts?: unknown
  readonly navigator?: { readonly userAgent?: string } | undefined
  readonly Deno?: unknown
  readonly Bun?: unknown
}

/** Clocks, randomness and globals. Tests pass others. */
export interface Platform {
  readonly scope: GlobalScope
  /** A clock that never goes back, for durations. */
  readonly monotonicMs: () => number
  /** The time of day, for timestamps. */
  readonly wallMs: () => number
  /** 0 ≤ random < 1 */
  readonly random: () => number
  /** An idempotency key: 128 random bits. */
  readonly randomKey: () => string
}

export function systemPlatform(): Platform {
  return {
    scope: globalThis,
    monotonicMs: () => performance.now(),
    wallMs: Date.now,
    random: Math.random,
    randomKey,
  }
}

/** Not `crypto.randomUUID`, which pages that were loaded without TLS do not have. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Whether the code runs in a page or in a web worker, where users can read every value of the program. */
export function isBrowser({ window, importScripts, navigator, Deno, Bun }: GlobalScope): boolean {
  if (window?.document !== undefined) return true
  // Cloudflare, Deno and Bun run code on servers, in scopes that resemble web workers.
  const isServer = Deno !== undefined || Bun !== undefined || navigator?.userAgent === 'Cloudflare-Workers'
  return typeof importScripts === 'function' && !isServer
}

export const HOUR_MS = 3_600_000

/** The longest delay that setTimeout supports. A longer one would end at once. */
const DELAY_MS_MAX = 2 ** 31 - 1

export type Timer = ReturnType<typeof setTimeout>

/** A timer that does not keep the process alive. */
export function startTimer(callback: () => void, delayMs: number): Timer {
  const timer: unknown = setTimeout(callback, Math.min(Math.max(0, delayMs), DELAY_MS_MAX))
  // Timers are objects in Node and Bun, and numbers in Deno and in browsers. A number in a browser keeps nothing alive.
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function')
    timer.unref()
  else (globalThis as { Deno?: { unrefTimer?: (timer: unknown) => void } }).Deno?.unrefTimer?.(timer)
  return timer as Timer
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

/** A process that has nothing else to do ends at most this much later. */
const EXIT_FLUSH_MS = 2_000

type Listen = (event: 'beforeExit', listener: () => void) => unknown

/** Of all clients. A listener of each one would make Node warn of a leak, from the eleventh on. */
const flushes = new Set<() => Promise<void>>()

const flushAll = (): void => flushes.forEach((flush) => void flush())

/**
 * Flushes when the process has nothing else to do. `process.exit` and signals do not cause the event.
 *
 * @returns a function that ends this
 */
export function flushBeforeExit(
  flush: (options: { readonly timeoutMs: number }) => Promise<{ readonly pending: number }>,
): () => void {
  // Not in browsers and in workers.
  const { process } = globalThis as { process?: { on?: Listen; off?: Listen } }
  if (process?.on === undefined || process.off === undefined) return () => undefined
  let leftMs = EXIT_FLUSH_MS
  // The event is emitted again after the flush, until there is nothing to do. A hook that logs must not keep the process alive.
  const flushOnce = async (): Promise<void> => {
    if (leftMs <= 0) return
    const startedAtMs = performance.now()
    const { pending } = await flush({ timeoutMs: leftMs })
    leftMs = pending > 0 ? 0 : leftMs - (performance.now() - startedAtMs)
  }
  if (flushes.size === 0) process.on('beforeExit', flushAll)
  flushes.add(flushOnce)
  return () => {
    flushes.delete(flushOnce)
    if (flushes.size === 0) process.off?.('beforeExit', flushAll)
  }
}
