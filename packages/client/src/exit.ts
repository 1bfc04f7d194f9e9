import type { FlushOptions, FlushResult } from './delivery/flush.ts'

/** A process that has nothing else to do ends at most this much later. */
const EXIT_FLUSH_MS = 2_000

interface ProcessEvents {
  on?: (event: 'beforeExit', listener: () => void) => unknown
  off?: (event: 'beforeExit', listener: () => void) => unknown
}

/** Of all clients. A listener of each one would make Node warn of a leak, from the eleventh on. */
const flushes = new Set<() => Promise<void>>()

const flushAll = (): void => {
  for (const flush of flushes) void flush()
}

/**
 * Flushes when the process has nothing else to do. `process.exit` and signals do not cause the event.
 *
 * @returns a function that ends this
 */
export function flushBeforeExit(flush: (options: FlushOptions) => Promise<FlushResult>): () => void {
  // Not in browsers and in workers.
  const { process } = globalThis as { process?: ProcessEvents }
  if (process?.on === undefined || process.off === undefined) return () => undefined
  let leftMs = EXIT_FLUSH_MS
  let isFlushing = false
  // The event is emitted again after the flush, until there is nothing to do. A hook that logs must not keep the process alive.
  const flushOnce = async (): Promise<void> => {
    if (isFlushing || leftMs <= 0) return
    isFlushing = true
    const startedAtMs = performance.now()
    const { pending } = await flush({ timeoutMs: leftMs })
    leftMs = pending > 0 ? 0 : leftMs - (performance.now() - startedAtMs)
    isFlushing = false
  }
  if (flushes.size === 0) process.on('beforeExit', flushAll)
  flushes.add(flushOnce)
  return () => {
    flushes.delete(flushOnce)
    if (flushes.size === 0) process.off?.('beforeExit', flushAll)
  }
}
