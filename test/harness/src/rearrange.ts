import { varint } from './otlp-logs.ts'

/** The messages in a message, by the numbers of their fields. */
interface Message {
  readonly [field: number]: () => Message
}

const anyValue: Message = { 5: () => ({ 1: () => anyValue }), 6: () => ({ 1: () => keyValue }) }
const keyValue: Message = { 2: () => anyValue }
const record: Message = { 5: () => anyValue, 6: () => keyValue }
const scopeLogs: Message = { 1: () => ({ 3: () => keyValue }), 2: () => record }
const resourceLogs: Message = { 1: () => ({ 1: () => keyValue }), 2: () => scopeLogs }
const request: Message = { 1: () => resourceLogs }

/** Changes the encoded fields of a message. */
export type Change = (fields: Buffer[]) => Buffer[]

/** The same fields from the last to the first one, as the Collector writes them. */
export const descending: Change = (fields) => fields.toReversed()

const VARINT_BYTES_MAX = 10

/**
 * Changes the fields of a request of OTLP, and those of all messages in it.
 *
 * @param bytes with a single byte per tag
 * @param more how many bytes more than it needs a length gets, which official decoders accept
 */
export function rearrange(
  bytes: Buffer,
  change: Change,
  more = (): number => 0,
  message: Message = request,
): Buffer {
  const fields: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const start = at
    const tag = bytes[at] ?? 0
    const type = tag & 7
    const number = varintAt(bytes, at + 1)
    if (type === 2) {
      const inner = message[tag >> 3]
      const content = bytes.subarray(number.end, number.end + number.value)
      const written = inner === undefined ? content : rearrange(content, change, more, inner())
      fields.push(
        Buffer.concat([bytes.subarray(at, at + 1), lengthen(varint(written.length), more()), written]),
      )
      at = number.end + number.value
    } else {
      at = type === 0 ? number.end : at + 1 + (type === 1 ? 8 : 4)
      fields.push(bytes.subarray(start, at))
    }
  }
  return Buffer.concat(change(fields))
}

function varintAt(bytes: Buffer, start: number): { value: number; end: number } {
  let value = 0
  let end = start
  for (let shift = 1; ; shift *= 128) {
    const byte = bytes[end] ?? 0
    end += 1
    value += (byte & 0x7f) * shift
    if (byte < 0x80) return { value, end }
  }
}

function lengthen(bytes: Buffer, more: number): Buffer {
  const length = Math.min(VARINT_BYTES_MAX, bytes.length + more)
  if (length === bytes.length) return bytes
  const long = Buffer.alloc(length, 0x80)
  for (const [at, byte] of bytes.entries()) long[at] = byte | 0x80
  long[length - 1] = 0
  return long
}
