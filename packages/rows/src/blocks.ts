import { nativeString, type ColumnType, columnTypes, escapeTsv, rowColumns } from './row-codec.ts'

/**
 * Rows by columns, as ClickHouse's format Native has them, so that ClickHouse copies them, and parses nothing. As bytes, a block is the
 * number of its rows, the length of each column, and the columns. Numbers are varints (LEB128).
 */
export interface Block {
  readonly rows: number
  /** For each of `rowColumns`, as many values as there are rows, or a zstd frame of them. */
  readonly columns: readonly Buffer[]
}

/** How the values of a type are stored. */
interface ValueCodec {
  /** Undefined if each value begins with its length. */
  readonly bytes: number | undefined
  /** The value between two positions as it is in a row of text. */
  readonly decode: (bytes: Buffer, from: number, end: number) => string
}

const DAY_MS = 86_400_000
const TWO_32 = 2 ** 32
const TIME_BYTES = 8

const codecs: Readonly<Record<ColumnType, ValueCodec>> = {
  String: { bytes: undefined, decode: (bytes, from, end) => escapeTsv(bytes.toString('utf8', from, end)) },
  // Days since 1970.
  Date: { bytes: 2, decode: (bytes, at) => secondText(bytes.readUInt16LE(at) * DAY_MS).slice(0, 10) },
  // Two numbers.
  UUID: {
    bytes: 16,
    decode: (bytes, at) => {
      const hex = [at, at + 8]
        .map((from) => bytes.readBigUInt64LE(from).toString(16).padStart(16, '0'))
        .join('')
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
    },
  },
  "DateTime64(3, 'UTC')": timeCodec(3),
  "DateTime64(6, 'UTC')": timeCodec(6),
}

const columnCodecs = rowColumns.map((name) => codecs[columnTypes[name]])

/** Units of a second since 1970: thousandths or millionths. */
function timeCodec(digits: number): ValueCodec {
  const unitsPerMs = 10 ** (digits - 3)
  return {
    bytes: TIME_BYTES,
    decode: (bytes, at) => {
      // Microseconds exceed 2^53 after the year 2255, so the milliseconds and the rest are divided one after the other.
      const [high, low] = [bytes.readUInt32LE(at + 4), bytes.readUInt32LE(at)]
      const rest = (high % unitsPerMs) * TWO_32 + low
      const ms = Math.floor(high / unitsPerMs) * TWO_32 + Math.floor(rest / unitsPerMs)
      const fraction = String((ms % 1_000) * unitsPerMs + (rest % unitsPerMs)).padStart(digits, '0')
      return `${secondText(ms - (ms % 1_000))}.${fraction}`
    },
  }
}

/** The second that was written last: rows that arrive together have few different ones. */
let last = { ms: -1, text: '' }

function secondText(ms: number): string {
  if (last.ms !== ms) last = { ms, text: new Date(ms).toISOString().slice(0, 19).replace('T', ' ') }
  return last.text
}

/** Reads varints, and what they are the length of. */
class Reader {
  readonly bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** @returns NaN at the end of the bytes */
  number(): number {
    const { bytes } = this
    for (let number = 0, unit = 1; ; unit *= 0x80) {
      const byte = bytes[this.at] ?? Number.NaN
      this.at += 1
      number += (byte % 0x80) * unit
      if (!(byte >= 0x80)) return number
    }
  }

  /** @throws RangeError if the bytes end too early */
  block(): Block {
    const rows = this.number()
    const lengths = columnCodecs.map(() => this.number())
    const columns = lengths.map((length) => this.bytes.subarray(this.at, (this.at += length)))
    if (!(this.at <= this.bytes.length)) throw new RangeError('the bytes are not blocks')
    return { rows, columns }
  }
}

/** ClickHouse would take too few or too many values of one chunk for those of another one. */
function hasValues(values: Buffer, column: number, rows: number): boolean {
  const bytes = columnCodecs[column]?.bytes
  if (bytes !== undefined) return values.length === rows * bytes
  const reader = new Reader(values)
  let row = 0
  for (; row < rows && reader.at < values.length; row += 1) {
    const length = reader.number()
    reader.at += length
  }
  return row === rows && reader.at === values.length
}

/** Whether each column of a block has as many values as there are rows. */
export function isWhole({ rows, columns }: Block): boolean {
  return columns.every((column, i) => hasValues(column, i, rows))
}

/**
 * The rows of blocks that follow each other, as one block, without a look at their values.
 *
 * @throws RangeError if the bytes are not blocks
 */
export function readJoined(bytes: Buffer): Block {
  const reader = new Reader(bytes)
  const first = reader.block()
  if (reader.at === bytes.length) return first
  const blocks = [first]
  while (reader.at < bytes.length) blocks.push(reader.block())
  return {
    rows: blocks.reduce((sum, { rows }) => sum + rows, 0),
    columns: rowColumns.map((_name, i) => Buffer.concat(blocks.map(({ columns }) => columns[i] as Buffer))),
  }
}

const RECEIVED_AT = rowColumns.indexOf('received_at')

/** The earliest time of receipt of the rows, in ms since 1970. Infinity without rows. */
export function earliestReceiptMs({ columns }: Block): number {
  const times = columns[RECEIVED_AT] as Buffer
  let earliestMs = Infinity
  for (let at = 0; at < times.length; at += TIME_BYTES) {
    const ms = times.readUInt32LE(at + 4) * TWO_32 + times.readUInt32LE(at)
    if (ms < earliestMs) earliestMs = ms
  }
  return earliestMs
}

/** A block whose rows were received at this time, in ms since 1970, unless they were received later. */
export function receivedFrom(ms: number, { rows, columns }: Block): Block {
  const times = Buffer.from(columns[RECEIVED_AT] as Buffer)
  for (let at = 0; at < times.length; at += TIME_BYTES)
    if (times.readBigInt64LE(at) < ms) times.writeBigInt64LE(BigInt(ms), at)
  return { rows, columns: columns.with(RECEIVED_AT, times) }
}

/** A block as bytes. */
export function writeBlock({ rows, columns }: Block): Buffer {
  return Buffer.concat([...[rows, ...columns.map(({ length }) => length)].map(encodeNumber), ...columns])
}

/** The values of a column as they are in rows of text. */
function textsOf({ rows, columns }: Block, column: number): string[] {
  const { bytes, decode } = columnCodecs[column] as ValueCodec
  const reader = new Reader(columns[column] as Buffer)
  return Array.from({ length: rows }, () => {
    const length = bytes ?? reader.number()
    const from = reader.at
    reader.at += length
    return decode(reader.bytes, from, reader.at)
  })
}

/** The rows of a block as text, each with its newline. @param columns how many columns each has, from the first one */
export function rowsOfBlock(block: Block, columns = rowColumns.length): string[] {
  const texts = Array.from({ length: columns }, (_, column) => textsOf(block, column))
  return Array.from({ length: block.rows }, (_, row) => `${texts.map((values) => values[row]).join('\t')}\n`)
}

function encodeNumber(number: number): Buffer {
  const bytes: number[] = []
  let rest = number
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80)
  return Buffer.from([...bytes, rest])
}

/** The most bytes that a block of zstd has. */
const STORED_BYTES_MAX = 131_072

/** What precedes the values of each column in an insert: its name and its type. */
const heads = rowColumns.map((name) =>
  store(Buffer.from(nativeString(name) + nativeString(columnTypes[name]))),
)

/**
 * The body of an insert in the format Native: the rows of all blocks as one.
 *
 * @param blocks with columns in zstd frames: concatenated frames are a valid body
 */
export function* insertBody(blocks: readonly Block[]): Generator<Buffer> {
  const rows = blocks.reduce((sum, block) => sum + block.rows, 0)
  yield store(Buffer.concat([encodeNumber(rowColumns.length), encodeNumber(rows)]))
  for (const [column, head] of heads.entries()) {
    yield head
    for (const { columns } of blocks) yield columns[column] as Buffer
  }
}

/** Makes zstd frames (RFC 8878) whose content is not compressed: a call of zlib costs more than it saves for a few kilobytes. */
export function store(bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let from = 0; from < bytes.length; from += STORED_BYTES_MAX) {
    const part = bytes.subarray(from, from + STORED_BYTES_MAX)
    // Magic number, no options, a window of 128 KiB, and the head of the last block, which is raw.
    const head = Buffer.of(0x28, 0xb5, 0x2f, 0xfd, 0, 0x38, 0, 0, 0)
    head.writeUIntLE(part.length * 8 + 1, 6, 3)
    parts.push(head, part)
  }
  return Buffer.concat(parts)
}
