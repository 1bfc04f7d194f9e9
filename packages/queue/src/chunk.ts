import { compressRows, rowColumns } from '@sluice/rows'
import { parseObject } from '@sluice/runtime'
import { hash } from 'node:crypto'

/** The data of a BullMQ job: a zstd frame of rows that ClickHouse can read as it is. */
export interface Chunk {
  /** Version of this format. A worker leaves chunks with an unknown version in the queue. */
  readonly v: 1
  /** The columns of the rows, as `columnsHash` makes it. Undefined in chunks of earlier versions, which have `firstColumns`. */
  readonly columns?: string | undefined
  /** Number of rows in the frame. */
  readonly rows: number
  /** Size of the rows in bytes, before compression. */
  readonly bytes: number
  /** One zstd frame of rows as base64: BullMQ stores a job's data as JSON. */
  readonly frame: string
  /**
   * The W3C `traceparent` of the chunk's span, for the spans of its batch. Only of chunks with a traced request. Nothing else depends on
   * it, and workers of earlier versions ignore it.
   */
  readonly trace?: string | undefined
}

/** The length of a `traceparent`. Other strings are ignored, so that no job adds more than this to the memory of a worker. */
const TRACE_LENGTH = 55

/** A chunk that a worker has fetched from the queue. Its `trace` may be invalid. */
export interface HeldChunk extends Pick<Chunk, 'rows' | 'bytes' | 'trace'> {
  /** The id of its job. */
  readonly id: string
  /** zstd */
  readonly frame: Buffer
}

/**
 * A short name of columns and their order: eight hexadecimal digits. Eight digits are enough, because they only distinguish the few
 * lists of columns that there will ever be.
 */
export function columnsHash(columns: readonly string[]): string {
  return hash('sha256', columns.join(',')).slice(0, 8)
}

/** The columns of all chunks that do not name them. */
const firstColumns = 'd6544c43'
const ownColumns = columnsHash(rowColumns)

/**
 * Whether this process can insert the rows of a chunk. A row does not contain the names of its columns: rows of another version of Sluice
 * may have as many columns in another order, and ClickHouse would accept them with exchanged values.
 */
export function isKnownFormat(v: unknown, columns: unknown): boolean {
  return v === 1 && (columns ?? firstColumns) === ownColumns
}

/** What the data of a job is. Another program, or a newer version of this one, may have added the job. */
export type JobData =
  | { readonly kind: 'chunk'; readonly chunk: Chunk }
  | { readonly kind: 'chunk of an unknown format' }
  | { readonly kind: 'damaged' }

/**
 * Packs rows, in UTF-8 and each with its newline, into a chunk.
 *
 * @param trace see `Chunk.trace`
 */
export function encodeChunk(rows: number, text: Buffer, trace?: string): Chunk {
  const frame = compressRows(text).toString('base64')
  const chunk: Chunk = { v: 1, columns: ownColumns, rows, bytes: text.length, frame }
  return trace === undefined ? chunk : { ...chunk, trace }
}

/** @param json the data of a job, as Redis stores it */
export function readJobData(json: string): JobData {
  const { v, columns, rows, bytes, frame, trace } = parseObject(json) ?? {}
  if (typeof v !== 'number') return { kind: 'damaged' }
  if (!isKnownFormat(v, columns)) return { kind: 'chunk of an unknown format' }
  if (typeof rows !== 'number' || typeof bytes !== 'number' || typeof frame !== 'string') {
    return { kind: 'damaged' }
  }
  const chunk: Chunk = { v: 1, rows, bytes, frame }
  const isTraced = typeof trace === 'string' && trace.length === TRACE_LENGTH
  return { kind: 'chunk', chunk: isTraced ? { ...chunk, trace } : chunk }
}

/** The number of rows that the data of a job names, whatever its format is. Undefined if it names none. */
export function rowsOfJobData(json: string): number | undefined {
  const { rows } = parseObject(json) ?? {}
  return typeof rows === 'number' ? rows : undefined
}

/** @param id the id of the chunk's job */
export function decodeChunk(id: string, { rows, bytes, frame, trace }: Chunk): HeldChunk {
  return { id, rows, bytes, frame: Buffer.from(frame, 'base64'), trace }
}
