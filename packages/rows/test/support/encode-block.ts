import { writeBlock } from '../../src/blocks.ts'
import { type ColumnType, columnTypes, rowColumns, unescapeTsv } from '../../src/row-codec.ts'

const DAY_MS = 86_400_000
const UUID_BYTES = 16
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/** The values of each type, as bytes. Rows have them as text. A missing value is zero. */
const encoders: Readonly<Record<ColumnType, (text: string) => Buffer>> = {
  String: (text) => {
    const bytes = Buffer.from(unescapeTsv(text))
    return Buffer.concat([encodeNumber(bytes.length), bytes])
  },
  Date: (text) => Buffer.from(Uint16Array.of(text === '' ? 0 : Date.parse(text) / DAY_MS).buffer),
  UUID: encodeId,
  "DateTime64(3, 'UTC')": (text) => encodeTime(text, 3),
  "DateTime64(6, 'UTC')": (text) => encodeTime(text, 6),
}

function encodeNumber(number: number): Buffer {
  return number < 0x80
    ? Buffer.of(number)
    : Buffer.concat([Buffer.of((number & 0x7f) | 0x80), encodeNumber(number >>> 7)])
}

/** An id may also be a name, see `nameOfId`. */
function encodeId(text: string): Buffer {
  const bytes = uuid.test(text) ? Buffer.from(text.replaceAll('-', ''), 'hex') : Buffer.from(text)
  if (bytes.length > UUID_BYTES) throw new RangeError(`the name ${text} has more than ${UUID_BYTES} bytes`)
  const padded = Buffer.concat([bytes], UUID_BYTES)
  return Buffer.concat([padded.subarray(0, 8).toReversed(), padded.subarray(8).toReversed()])
}

/** Tests may give a row a short name as its id. As a UUID it has the bytes of the name. Other ids are returned as they are. */
export function nameOfId(id: string): string {
  const bytes = uuid.test(id) ? Buffer.from(id.replaceAll('-', ''), 'hex').toString('latin1') : ''
  return /^([!-~]+)\0*$/.exec(bytes)?.[1] ?? id
}

/** Any form that `parseTimestamp` returns. */
function encodeTime(text: string, digits: number): Buffer {
  const seconds = text === '' ? 0 : Date.parse(`${text.slice(0, 10)}T${text.slice(11, 19)}Z`) / 1_000
  const fraction = text.slice(20).replace('Z', '').padEnd(digits, '0').slice(0, digits)
  return Buffer.from(BigInt64Array.of(BigInt(seconds) * 10n ** BigInt(digits) + BigInt(fraction)).buffer)
}

/** Makes a block of rows of text, each with its newline. Their last columns may be missing. */
export function encodeBlock(rows: readonly string[]): Buffer {
  const fields = rows.map((row) => row.slice(0, -1).split('\t'))
  const columns = rowColumns.map((name, column) =>
    Buffer.concat(fields.map((row) => encoders[columnTypes[name]](row[column] ?? ''))),
  )
  return writeBlock({ rows: rows.length, columns })
}
