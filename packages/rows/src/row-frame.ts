import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { type Block, isWhole, keysOfBlock, readBlocks, rowsOfBlock, store, writeBlock } from './blocks.ts'
import { type RowKey, rowKey } from './row-codec.ts'

/**
 * Level 1: with 500 rows per frame, a row of 340 bytes is compressed to about 55. gzip costs eight times as much CPU, and higher
 * levels save less than they cost. With a hash table of 8,192 entries, which stays in the L1 cache, compression takes an eighth less
 * time, and the frame has the same size.
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
 * From this size on, each column is a frame of its own: a worker sends these as they are, and ClickHouse decompresses them. The calls for 14
 * frames cost the API as much as a worker saves for about 350 rows, since it need not decompress them. In threads they would keep the event loop
 * for half of the time, and cost twice the CPU.
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

/** Whether the rows of a frame are in a block. Otherwise they are text. */
export function isOfBlocks(frame: Buffer): boolean {
  return frame[0] === BLOCK || frame[0] === COLUMNS
}

function readFrame(frame: Buffer): Block | undefined {
  const bytes = frame[0] === BLOCK ? decompress(frame.subarray(1)) : frame.subarray(1)
  const blocks = (bytes && readBlocks(bytes)) ?? []
  return blocks.length === 1 ? blocks[0] : undefined
}

/** The block of a frame. Undefined if the frame cannot be read. */
export function blockOfFrame(frame: Buffer): Block | undefined {
  const read = isOfBlocks(frame) ? readFrame(frame) : undefined
  if (read === undefined) return undefined
  const plain =
    frame[0] === BLOCK ? read.columns : read.columns.map((column) => decompress(column) ?? Buffer.of())
  const block = { rows: read.rows, columns: plain }
  return isWhole(block) ? block : undefined
}

/**
 * The block of a frame with zstd frames as columns, for `insertBody`. If each column was compressed alone, nothing is decompressed, and
 * ClickHouse reports what is wrong with it. Undefined if the frame cannot be read.
 */
export function compressedBlockOf(frame: Buffer): Block | undefined {
  if (frame[0] === COLUMNS) return readFrame(frame)
  const block = blockOfFrame(frame)
  return block && { rows: block.rows, columns: block.columns.map(store) }
}

/**
 * Compresses rows of text, each with its newline, into a zstd frame: chunks of earlier versions, and what is left of a batch that is not
 * inserted as a whole. Strings are encoded as UTF-8. Concatenated frames are a valid zstd stream.
 */
export function compressRows(rows: Buffer | string): Buffer {
  return compress(typeof rows === 'string' ? Buffer.from(rows) : rows)
}

/** Whether a frame has a row of one of the projects. False if it cannot be read. */
export function hasRowOf(projectIds: Iterable<string>, frame: Buffer): boolean {
  if (isOfBlocks(frame)) {
    const [column = Buffer.of()] = readFrame(frame)?.columns ?? []
    const ids = frame[0] === BLOCK ? column : decompress(column)
    // Before each id is its length.
    return Iterator.from(projectIds).some((id) => ids?.includes(`${String.fromCharCode(id.length)}${id}`))
  }
  const rows = decompress(frame)
  if (rows === undefined) return false
  // The first column is the project's id, and no value contains a newline.
  return Iterator.from(projectIds).some((id) => {
    const start = `${id}\t`
    return rows.subarray(0, start.length).equals(Buffer.from(start)) || rows.includes(`\n${start}`)
  })
}

/** The rows of a frame as text, each with its newline. Undefined if the frame cannot be read. */
export function rowsOfFrame(frame: Buffer): string[] | undefined {
  if (isOfBlocks(frame)) {
    const block = blockOfFrame(frame)
    return block && rowsOfBlock(block)
  }
  return decompress(frame)
    ?.toString()
    .split(/(?<=\n)/)
}

/** What is looked up of each row. Undefined if the frame cannot be read. */
export function keysOfFrame(frame: Buffer): RowKey[] | undefined {
  if (!isOfBlocks(frame)) return rowsOfFrame(frame)?.map(rowKey)
  const block = blockOfFrame(frame)
  return block && keysOfBlock(block)
}

function decompress(frame: Buffer): Buffer | undefined {
  try {
    return zstdDecompressSync(frame, { chunkSize: pieceOf(frame.length * RATIO) })
  } catch {
    return undefined
  }
}

/**
 * Frames without the rows that have one of these ids. A frame that cannot be read is returned as it is: ClickHouse
 * reports what is wrong with it.
 */
export function framesWithout(ids: ReadonlySet<string>, frames: readonly Buffer[]): Buffer[] {
  if (ids.size === 0) return [...frames]
  return frames.flatMap((frame) => {
    const keys = keysOfFrame(frame) ?? []
    const isKept = keys.map(({ id }) => !ids.has(id))
    if (!isKept.includes(false)) return [frame]
    if (!isKept.includes(true)) return []
    const rows = rowsOfFrame(frame) ?? []
    return [compressRows(rows.filter((_row, i) => isKept[i]).join(''))]
  })
}
