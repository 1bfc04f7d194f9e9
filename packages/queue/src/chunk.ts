import { compressRows } from '@sluice/rows'

/** The data of a BullMQ job: a zstd frame of rows that ClickHouse can read as it is. */
export interface Chunk {
  /** Version of this format. A worker leaves chunks with an unknown version in the queue. */
  readonly v: 1
  /** Number of rows in the frame. */
  readonly rows: number
  /** Size of the rows in bytes, before compression. */
  readonly bytes: number
  /** One zstd frame of rows as base64: BullMQ stores a job's data as JSON text. */
  readonly frame: string
}

/** A chunk that a worker has fetched from the queue. */
export interface HeldChunk {
  /** The id of its job. */
  readonly id: string
  readonly rows: number
  /** Size of its rows in bytes, before compression. */
  readonly bytes: number
  /** zstd */
  readonly frame: Buffer
}

/** Packs rows, in UTF-8 and each with its newline, into a chunk. */
export function encodeChunk(rows: number, text: Buffer): Chunk {
  return { v: 1, rows, bytes: text.length, frame: compressRows(text).toString('base64') }
}

/** @param id the id of the chunk's job */
export function decodeChunk(id: string, { rows, bytes, frame }: Chunk): HeldChunk {
  return { id, rows, bytes, frame: Buffer.from(frame, 'base64') }
}
