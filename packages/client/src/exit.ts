import type { FlushOptions, FlushResult } from './delivery/flush.ts'

/** A process that has nothing else to do ends at most this much later. */
const EXIT_FLUSH_MS = 2_000

interface ProcessEvents {
  on?: (event: 'beforeExit', listener: () => void) => unknown
  off?: (event: 'beforeExit', listener: () => void) => unknown
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
  let isPossible = true
  // The event is emitted again after the flush, until there is nothing to do.
  const flushOnce = async (): Promise<void> => {
    if (!isPossible) return
    isPossible = false
    const { accepted, pending } = await flush({ timeoutMs: EXIT_FLUSH_MS })
    isPossible = accepted > 0 && pending === 0
  }
  const listener = (): void => void flushOnce()
  process.on('beforeExit', listener)
  return () => process.off?.('beforeExit', listener)
}
