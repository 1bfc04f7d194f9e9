import { compressRows } from '@sluice/rows'
import type { Chunk } from '../../src/chunk.ts'

/** A chunk of version 1, as earlier versions add them. Its columns are not named. */
export function textChunk(rows: readonly string[]): Chunk {
  const text = rows.join('')
  return { v: 1, rows: rows.length, bytes: Buffer.byteLength(text), frame: compressRows(text) }
}

/** The data of the job of such a chunk, which has its frame. */
export function textChunkData({ frame, ...data }: Chunk): object {
  return { ...data, frame: frame.toString('base64') }
}
