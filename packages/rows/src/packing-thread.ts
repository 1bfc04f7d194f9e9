// The thread of a `BlockPacker`.
import { parentPort } from 'node:worker_threads'
import type { PackingResult, PackingTask } from './block-packer.ts'
import { packBlocks } from './row-frame.ts'

parentPort?.on('message', ({ id, memory, bytes }: PackingTask) => {
  const packed = packBlocks(Buffer.from(memory, 0, bytes))
  // A copy: Node may have allocated a small frame in memory that it shares.
  const frame = new Uint8Array(packed.frame).buffer
  const result: PackingResult = { id, memory, packed: { ...packed, frame } }
  parentPort?.postMessage(result, [memory, frame])
})
