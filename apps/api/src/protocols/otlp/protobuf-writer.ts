import { tagOf } from './protobuf-reader.ts'

/** A field of a message with a number, which must not be negative. The default value 0 is not written. */
export function numberField(field: number, value: number): Buffer {
  return value === 0 ? Buffer.alloc(0) : Buffer.from([tagOf(field, 'varint'), ...varint(value)])
}

/** A field of a message with a text or a message. */
export function bytesField(field: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from([tagOf(field, 'bytes'), ...varint(bytes.length)]), bytes])
}

function varint(value: number): number[] {
  const bytes: number[] = []
  let left = value
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) | 0x80)
  bytes.push(left)
  return bytes
}
