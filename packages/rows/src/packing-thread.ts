// The thread of a `BlockPacker`.
import { parentPort } from 'node:worker_threads'
import { packBlocks } from './row-frame.ts'

parentPort?.on('message', ({ memory, bytes }: { memory: ArrayBuffer; bytes: number }) => {
  const packed = packBlocks(Buffer.from(memory, 0, bytes))
  // Node may have allocated a small frame in memory that it shares.
  const frame = new Uint8Array(packed.frame)
  parentPort?.postMessage({ ...packed, frame, memory }, [frame.buffer, memory])
})
