import { syncBuiltinESMExports } from 'node:module'
import zlib from 'node:zlib'

const immediates: (() => void)[] = []
/** The API allocates memory for a full chunk. The chunks of a schedule are small. */
const CHUNK_BYTES_MAX = 65_536

/**
 * Replaces the parts of Node that cost the simulator most of its time, and that no guard depends on: compression, large buffers, the iterations of
 * the event loop, and stack traces.
 */
export function simulateRuntime(): void {
  Object.assign(zlib, { zstdCompressSync: copy, zstdDecompressSync: copy })
  syncBuiltinESMExports()
  const allocate = Buffer.allocUnsafeSlow.bind(Buffer)
  Buffer.allocUnsafeSlow = (bytes) => allocate(Math.min(bytes, CHUNK_BYTES_MAX))
  Object.assign(globalThis, { setImmediate: (run: () => void) => immediates.push(run) })
  Error.stackTraceLimit = 0
}

function copy(bytes: Buffer | string): Buffer {
  return Buffer.from(bytes as string)
}

/** Resolves when no promise is left that can be settled now. The simulated code waits for nothing but `SimulatedTime` and `setImmediate`. */
export async function settled(): Promise<void> {
  await microtasks()
  while (immediates.length > 0) {
    for (const run of immediates.splice(0)) run()
    await microtasks()
  }
}

/** Node runs the queue of ticks when no microtask is left. */
function microtasks(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve))
}
