import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import {
  type Block,
  earliestReceiptMs,
  isWhole,
  readJoined,
  rowsOfBlock,
  store,
  writeBlock,
} from './blocks.ts'
import { KEY_COLUMNS, nativeString, type RowKey, rowKey } from './row-codec.ts'

/**
 * Level 1: with 500 rows per frame, a row of 340 bytes is compressed to about 55. gzip costs eight times as much CPU, and higher
 * levels save less than they cost. A hash table of 8,192 entries stays in the L1 cache, which saves an eighth of the time.
 */
const params = {
  [constants.ZSTD_c_compressionLevel]: 1,
  [constants.ZSTD_c_hashLog]: 13,
  [constants.ZSTD_c_minMatch]: 7,
}

/** Node passes the result in pieces of this size, and joins them. Most results are one piece: that saves up to half of the time. */
const pieceOf = (expectedBytes: number): number => Math.min(Math.max(expectedBytes, 16_384), 262_144)
/** Rows are at most about this much longer than their frame. */
const RATIO = 12

function compress(rows: Buffer, extra: Record<number, number> = {}): Buffer {
  return zstdCompressSync(rows, { params: { ...params, ...extra }, chunkSize: pieceOf(rows.length) })
}

/** The first byte of a frame of a block. A frame of text begins with zstd's 0x28. */
const BLOCK = 2
/** The first byte of a block whose columns are zstd frames. */
const COLUMNS = 3
/**
 * From this size on, each column is a frame of its own: a worker sends these as they are, and ClickHouse decompresses them. For a smaller
 * block, the calls for 14 frames cost the API more than a worker saves.
 */
const COLUMNS_BYTES_MIN = 100_000

/** Makes the frame of a block. */
export function compressBlock({ rows, columns }: Block): Buffer {
  const bytes = columns.reduce((sum, { length }) => sum + length, 0)
  if (bytes < COLUMNS_BYTES_MIN)
    return Buffer.concat([Buffer.of(BLOCK), compress(writeBlock({ rows, columns }))])
  // Values that were damaged would be taken for those of other chunks.
  const frames = columns.map((column) => compress(column, { [constants.ZSTD_c_checksumFlag]: 1 }))
  return Buffer.concat([Buffer.of(COLUMNS), writeBlock({ rows, columns: frames })])
}

/** What is known of rows when they are packed. */
export interface PackedRows {
  readonly rows: number
  /** Size of the rows in bytes, before compression. */
  readonly bytes: number
  /** The earliest time of receipt of its rows, in ms since 1970. */
  readonly receivedMs: number
  /** As `compressBlock` makes it. */
  readonly frame: Buffer
}

/** Packs blocks that follow each other. @throws RangeError if the bytes are not blocks */
export function packBlocks(blocks: Buffer): PackedRows {
  const block = readJoined(blocks)
  return {
    rows: block.rows,
    bytes: blocks.length,
    receivedMs: earliestReceiptMs(block),
    frame: compressBlock(block),
  }
}

/** Whether the rows of a frame are in a block. Otherwise they are text. */
export function isOfBlocks(frame: Buffer): boolean {
  return frame[0] === BLOCK || frame[0] === COLUMNS
}

/** What a frame of a block has: columns, or zstd frames of them. */
function readFrame(frame: Buffer): Block {
  return readJoined(frame[0] === BLOCK ? decompress(frame.subarray(1)) : frame.subarray(1))
}

/** The block of a frame. Undefined if the frame cannot be read. */
export function blockOfFrame(frame: Buffer): Block | undefined {
  return attempt(() => {
    if (!isOfBlocks(frame)) return undefined
    const { rows, columns } = readFrame(frame)
    const block = { rows, columns: frame[0] === BLOCK ? columns : columns.map(decompress) }
    return isWhole(block) ? block : undefined
  })
}

/**
 * The block of a frame with zstd frames as columns, for `insertBody`. If each column was compressed alone, nothing is decompressed, and
 * ClickHouse reports what is wrong with it. Undefined if the frame cannot be read.
 */
export function compressedBlockOf(frame: Buffer): Block | undefined {
  if (frame[0] === COLUMNS) return attempt(() => readFrame(frame))
  const block = blockOfFrame(frame)
  return block && { rows: block.rows, columns: block.columns.map(store) }
}

/**
 * Compresses rows of text, each with its newline: chunks of earlier versions, and what is left of a batch that is not inserted as a whole.
 * Concatenated frames are a valid zstd stream.
 */
export function compressRows(rows: Buffer | string): Buffer {
  return compress(typeof rows === 'string' ? Buffer.from(rows) : rows)
}

/** Whether a frame of a block has a row of one of the projects. False if it cannot be read. */
export function hasRowOf(projectIds: Iterable<string>, frame: Buffer): boolean {
  const column = attempt(() => {
    const [ids] = isOfBlocks(frame) ? readFrame(frame).columns : []
    return ids === undefined || frame[0] === BLOCK ? ids : decompress(ids)
  })
  return Iterator.from(projectIds).some((id) => column?.includes(nativeString(id)))
}

/**
 * The rows of a frame as text, each with its newline. Undefined if the frame cannot be read.
 *
 * @param columns how many columns are needed of each row
 */
export function rowsOfFrame(frame: Buffer, columns?: number): string[] | undefined {
  if (!isOfBlocks(frame))
    return attempt(() =>
      decompress(frame)
        .toString()
        .split(/(?<=\n)/),
    )
  const block = blockOfFrame(frame)
  return block && rowsOfBlock(block, columns)
}

/** What is looked up of each row. Undefined if the frame cannot be read. */
export function keysOfFrame(frame: Buffer): RowKey[] | undefined {
  return rowsOfFrame(frame, KEY_COLUMNS)?.map(rowKey)
}

function decompress(frame: Buffer): Buffer {
  return zstdDecompressSync(frame, { chunkSize: pieceOf(frame.length * RATIO) })
}

/** Undefined if a frame cannot be read. */
function attempt<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Frames without the rows that have one of these ids. A frame that cannot be read is returned as it is. */
export function framesWithout(ids: ReadonlySet<string>, frames: readonly Buffer[]): Buffer[] {
  if (ids.size === 0) return [...frames]
  return frames.flatMap((frame) => {
    const rows = rowsOfFrame(frame) ?? []
    const kept = rows.filter((row) => !ids.has(rowKey(row).id))
    if (kept.length === rows.length) return [frame]
    return kept.length === 0 ? [] : [compressRows(kept.join(''))]
  })
}
