import { Worker } from 'node:worker_threads'
import { type PackedRows, packBlocks } from './row-frame.ts'

/** Packing this much takes about as long as the messages to a thread and back. */
const AT_ONCE_BYTES_MAX = 50_000

type Result = PackedRows & { readonly memory: Buffer }
type Message = PackedRows & { readonly memory: ArrayBuffer }

/** Packs blocks. While a thread packs large ones, which takes milliseconds, the event loop serves requests. */
export class BlockPacker {
  #thread: Worker | undefined
  /** The thread answers in the order of its messages. */
  readonly #waiting: PromiseWithResolvers<Message>[] = []

  /**
   * @param memory begins with the blocks, and has an `ArrayBuffer` of its own. The caller must not use it until it gets it back
   * @returns also the memory, for reuse
   * @throws RangeError if the bytes are not blocks
   */
  async pack(memory: Buffer, bytes: number): Promise<Result> {
    if (bytes <= AT_ONCE_BYTES_MAX) return { ...packBlocks(memory.subarray(0, bytes)), memory }
    const result = Promise.withResolvers<Message>()
    this.#waiting.push(result)
    this.#thread ??= this.#startThread()
    this.#thread.postMessage({ memory: memory.buffer, bytes }, [memory.buffer as ArrayBuffer])
    const packed = await result.promise
    const { buffer, byteLength } = packed.frame
    return { ...packed, frame: Buffer.from(buffer, 0, byteLength), memory: Buffer.from(packed.memory) }
  }

  #startThread(): Worker {
    const thread = new Worker(new URL('packing-thread.ts', import.meta.url))
    thread.on('message', (packed: Message) => this.#waiting.shift()?.resolve(packed))
    thread.on('error', (error) => {
      this.#thread = undefined
      for (const { reject } of this.#waiting.splice(0)) reject(error)
    })
    // After `on`, which references its port again.
    thread.unref()
    return thread
  }
}
