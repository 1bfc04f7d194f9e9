import { Worker } from 'node:worker_threads'
import { type PackedRows, packBlocks } from './row-frame.ts'

/** Packing this much takes about as long as the messages to a thread and back. */
const AT_ONCE_BYTES_MAX = 50_000

/** What the thread gets. */
export interface PackingTask {
  readonly id: number
  readonly memory: ArrayBuffer
  readonly bytes: number
}

/** What it answers: the memory, too. Its answers to earlier tasks may arrive after its error, and then belong to nobody. */
export interface PackingResult {
  readonly id: number
  readonly memory: ArrayBuffer
  readonly packed: Omit<PackedRows, 'frame'> & { readonly frame: ArrayBuffer }
}

/** Packs blocks. While a thread packs large ones, which takes milliseconds, the event loop serves requests. */
export class BlockPacker {
  #thread: Worker | undefined
  #tasks = 0
  readonly #running = new Map<number, PromiseWithResolvers<PackingResult>>()

  /**
   * @param memory begins with the blocks, and has an `ArrayBuffer` of its own. The caller must not use it until it gets it back
   * @returns also the memory, for reuse
   * @throws RangeError if the bytes are not blocks
   */
  async pack(memory: Buffer, bytes: number): Promise<PackedRows & { readonly memory: Buffer }> {
    if (bytes <= AT_ONCE_BYTES_MAX) return { ...packBlocks(memory.subarray(0, bytes)), memory }
    const task: PackingTask = { id: (this.#tasks += 1), memory: memory.buffer as ArrayBuffer, bytes }
    this.#thread ??= this.#startThread()
    this.#thread.postMessage(task, [task.memory])
    // The process does not end before the task.
    this.#thread.ref()
    const result = Promise.withResolvers<PackingResult>()
    this.#running.set(task.id, result)
    const { packed, memory: returned } = await result.promise
    return { ...packed, frame: Buffer.from(packed.frame), memory: Buffer.from(returned) }
  }

  #startThread(): Worker {
    const thread = new Worker(new URL('packing-thread.ts', import.meta.url))
    thread.on('message', (result: PackingResult) => {
      this.#running.get(result.id)?.resolve(result)
      this.#running.delete(result.id)
      if (this.#running.size === 0) thread.unref()
    })
    thread.on('error', (error) => {
      this.#thread = undefined
      for (const { reject } of this.#running.values()) reject(error)
      this.#running.clear()
    })
    return thread
  }
}
