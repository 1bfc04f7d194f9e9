import { compressRows } from '@sluice/rows'
import type { NewChunk } from '../../src/chunk.ts'

/** A chunk of version 1, as earlier versions add them. Its columns are not named. */
export function textChunk(rows: readonly string[]): NewChunk {
  const text = rows.join('')
  return { v: 1, rows: rows.length, bytes: Buffer.byteLength(text), frame: compressRows(text), receivedMs: 0 }
}

/** The data of the job of such a chunk, which has its frame. */
export function textChunkData({ frame, receivedMs: _receivedMs, ...data }: NewChunk): object {
  return { ...data, frame: frame.toString('base64') }
}
