import { blockOfFrame, compressBlock, type PackedRows, receivedFrom, rowColumns } from '@sluice/rows'
import { parseObject } from '@sluice/runtime'
import { hash } from 'node:crypto'

/** The data of a BullMQ job: what a chunk has besides its rows. */
export interface ChunkData extends Pick<PackedRows, 'rows' | 'bytes'> {
  /**
   * Version of this format. A worker leaves chunks with an unknown version in the queue. Version 2 has rows in a block, and its frame in a
   * field of the job next to its data. Version 1 has rows of text, and its frame in its data.
   */
  readonly v: 1 | 2
  /** The columns of the rows, as `columnsHash` makes it. Undefined in chunks of earlier versions, which have `firstColumns`. */
  readonly columns?: string | undefined
  /** The W3C `traceparent` of the chunk's span, for the spans of its batch. Only of chunks with a traced request. Nothing else depends on it. */
  readonly trace?: string | undefined
}

/** A chunk that is not in the queue yet. */
export type NewChunk = ChunkData & PackedRows

/** The field of the hash of a job that has its frame. BullMQ deletes it with the job. */
export const FRAME_FIELD = 'frame'

/** The length of a `traceparent`. Other strings are ignored, so that no job adds more than this to the memory of a worker. */
const TRACE_LENGTH = 55

/** A chunk that a worker has fetched from the queue. Its `trace` may be invalid. */
export interface HeldChunk extends Pick<NewChunk, 'rows' | 'bytes' | 'trace'> {
  readonly id: string
  /** As `compressBlock` makes it, or `compressRows` for version 1. */
  readonly frame: Buffer
}

/** A short name of columns and their order. It only distinguishes the few lists of columns that there will ever be. */
export function columnsHash(columns: readonly string[]): string {
  return hash('sha256', columns.join(',')).slice(0, 8)
}

/** The columns of all chunks that do not name them. */
const firstColumns = 'd6544c43'
const ownColumns = columnsHash(rowColumns)

/**
 * Whether this process can insert the rows of a chunk. Rows of another version of Sluice may have as many columns in another order, and
 * ClickHouse would accept them with exchanged values.
 */
export function isKnownFormat(v: unknown, columns: unknown): boolean {
  return (v === 1 || v === 2) && (columns ?? firstColumns) === ownColumns
}

/** @param trace see `ChunkData.trace` */
export function encodeChunk(packed: PackedRows, trace?: string): NewChunk {
  const { rows, bytes, frame, receivedMs } = packed
  const chunk = { v: 2, columns: ownColumns, rows, bytes, frame, receivedMs } as const
  return trace === undefined ? chunk : { ...chunk, trace }
}

/** A chunk of `encodeChunk` whose rows were received at this time, in ms since 1970, unless they were received later. */
export function withReceiptFrom(ms: number, chunk: NewChunk): NewChunk {
  const block = blockOfFrame(chunk.frame)
  if (block === undefined) throw new RangeError('the chunk has no block')
  return {
    ...chunk,
    receivedMs: Math.max(ms, chunk.receivedMs),
    frame: compressBlock(receivedFrom(ms, block)),
  }
}

/**
 * Reads a job. Another program, or a newer version of this one, may have added it.
 *
 * @param json its data @param frame its field `FRAME_FIELD`, if it has one
 */
export function readJob(
  id: string,
  json: string,
  frame: Buffer | null,
): HeldChunk | 'of an unknown format' | 'damaged' {
  const { v, columns, rows, bytes, frame: inData, trace } = parseObject(json) ?? {}
  if (typeof v !== 'number') return 'damaged'
  if (!isKnownFormat(v, columns)) return 'of an unknown format'
  const found = v === 1 && typeof inData === 'string' ? Buffer.from(inData, 'base64') : frame
  if (typeof rows !== 'number' || typeof bytes !== 'number' || found === null) return 'damaged'
  const isTraced = typeof trace === 'string' && trace.length === TRACE_LENGTH
  return { id, rows, bytes, frame: found, trace: isTraced ? trace : undefined }
}

/** The number of rows that the data of a job names, whatever its format is. Undefined if it names none. */
export function rowsOfJobData(json: string): number | undefined {
  const { rows } = parseObject(json) ?? {}
  return typeof rows === 'number' ? rows : undefined
}
