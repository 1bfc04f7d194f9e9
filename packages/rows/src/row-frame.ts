import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { type Block, keysOfBlock, readBlocks, rowsOfBlock } from './blocks.ts'
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

function compress(rows: Buffer): Buffer {
  return zstdCompressSync(rows, { params, chunkSize: pieceOf(rows.length) })
}

/** The first byte of a frame of blocks. A frame of text begins with zstd's 0x28. */
const BLOCKS = 2

/** Compresses blocks that follow each other. */
export function compressBlocks(blocks: Buffer): Buffer {
  return Buffer.concat([Buffer.of(BLOCKS), compress(blocks)])
}

/** Whether the rows of a frame are in blocks. Otherwise they are text. */
export function isOfBlocks(frame: Buffer): boolean {
  return frame[0] === BLOCKS
}

/** Undefined if the frame cannot be read. */
export function blocksOfFrame(frame: Buffer): Block[] | undefined {
  const bytes = isOfBlocks(frame) ? decompress(frame.subarray(1)) : undefined
  return bytes && readBlocks(bytes)
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
    const ids = blocksOfFrame(frame)?.map(({ columns: [column] }) => column)
    // Before each id is its length.
    return Iterator.from(projectIds).some((id) =>
      ids?.some((column) => column?.includes(`${String.fromCharCode(id.length)}${id}`)),
    )
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
  if (isOfBlocks(frame)) return blocksOfFrame(frame)?.flatMap(rowsOfBlock)
  return decompress(frame)
    ?.toString()
    .split(/(?<=\n)/)
}

/** What is looked up of each row. Undefined if the frame cannot be read. */
export function keysOfFrame(frame: Buffer): RowKey[] | undefined {
  return isOfBlocks(frame) ? blocksOfFrame(frame)?.flatMap(keysOfBlock) : rowsOfFrame(frame)?.map(rowKey)
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
