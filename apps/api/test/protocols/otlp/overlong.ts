import { varint } from '@sluice/harness/otlp-logs'
import { ProtobufReader } from '../../../src/protocols/otlp/protobuf-reader.ts'

const VARINT_BYTES_MAX = 10

/** The messages in a message, by the numbers of their fields. */
interface Message {
  readonly [field: number]: () => Message
}

const value: Message = { 5: () => ({ 1: () => value }), 6: () => ({ 1: () => keyValue }) }
const keyValue: Message = { 2: () => value }
const record: Message = { 5: () => value, 6: () => keyValue }
const scopeLogs: Message = { 1: () => ({ 3: () => keyValue }), 2: () => record }
const resourceLogs: Message = { 1: () => ({ 1: () => keyValue }), 2: () => scopeLogs }
const request: Message = { 1: () => resourceLogs }

/**
 * A request of OTLP whose numbers and lengths have more bytes than they need, which official decoders accept.
 *
 * @param more how many bytes more a varint gets. The tags stay as they are
 */
export function overlong(bytes: Buffer, more: () => number, message: Message = request): Buffer {
  const parts: Buffer[] = []
  const reader = new ProtobufReader(bytes)
  for (let start = 0, tag = reader.next(); tag !== -1; start = reader.at, tag = reader.next()) {
    parts.push(bytes.subarray(start, reader.at))
    const valueStart = reader.at
    if ((tag & 7) === 2) {
      const inner = message[tag >> 3]
      const content = reader.bytes()
      const written = inner === undefined ? content : overlong(content, more, inner())
      parts.push(lengthen(varint(written.length), more()), written)
    } else {
      reader.skip()
      const written = bytes.subarray(valueStart, reader.at)
      parts.push((tag & 7) === 0 ? lengthen(written, more()) : written)
    }
  }
  return Buffer.concat(parts)
}

function lengthen(bytes: Buffer, more: number): Buffer {
  const length = Math.min(VARINT_BYTES_MAX, bytes.length + more)
  if (length === bytes.length) return bytes
  const long = Buffer.alloc(length, 0x80)
  for (const [at, byte] of bytes.entries()) long[at] = byte | 0x80
  long[length - 1] = 0
  return long
}
