import { limits } from '@sluice/schema'
import { checkNotEmpty } from '../../intake/intake.ts'
import { Problem, problems } from '../../problems.ts'

/** An element of three bytes copies at most 64 bytes. A block that declares more is malformed: no memory is allocated for it. */
const EXPANSION_MAX = 64 / 3
/** From this length on, a call costs less than a loop. */
const CALL_BYTES_MIN = 64

/**
 * Decodes a block of snappy: https://github.com/google/snappy/blob/main/format_description.txt. The largest takes some milliseconds.
 *
 * @throws Problem `empty_body`, `body_too_large`, `invalid_encoding` if the block is malformed, and what `hold` throws
 */
export function decodeSnappy(input: Buffer, hold: (bytes: number) => void): Buffer {
  checkNotEmpty(input)
  const { length, end } = readLength(input)
  if (length > limits.bodyBytesMax) throw new Problem('body_too_large', problems.body_too_large.detail)
  if (length > (input.length - end) * EXPANSION_MAX) throw malformed(end)
  hold(length)
  let at = end
  // Not zeroed: a block that does not fill it is malformed.
  const output = Buffer.allocUnsafe(length)
  let filled = 0
  while (at < input.length) {
    const tag = input[at] ?? 0
    const kind = tag & 3
    const headBytes = kind === 0 ? literalHeadBytes(tag) : kind === 1 ? 2 : kind === 2 ? 3 : 5
    const data = at + headBytes
    if (data > input.length) throw malformed(at)
    if (kind === 0) {
      const count = headBytes === 1 ? (tag >>> 2) + 1 : input.readUIntLE(at + 1, headBytes - 1) + 1
      if (count > input.length - data || count > length - filled) throw malformed(at)
      if (count >= CALL_BYTES_MIN) input.copy(output, filled, data, data + count)
      else for (let i = 0; i < count; i += 1) output[filled + i] = input[data + i] ?? 0
      filled += count
      at = data + count
    } else {
      const count = kind === 1 ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1
      const offset =
        kind === 1
          ? ((tag >>> 5) << 8) | (input[at + 1] ?? 0)
          : kind === 2
            ? input.readUInt16LE(at + 1)
            : input.readUInt32LE(at + 1)
      if (offset === 0 || offset > filled || count > length - filled) throw malformed(at)
      // Byte by byte: a copy may contain bytes that it writes itself.
      for (let i = 0; i < count; i += 1) output[filled + i] = output[filled - offset + i] ?? 0
      filled += count
      at = data
    }
  }
  if (filled !== length) throw malformed(at)
  return output
}

/** The tag of a literal has its length, or says how many bytes after it have the length. */
function literalHeadBytes(tag: number): number {
  const length = tag >>> 2
  return length < 60 ? 1 : length - 58
}

/** The length after decoding: at most 32 bits, seven in each byte. */
function readLength(input: Buffer): { length: number; end: number } {
  let length = 0
  for (let end = 0; end < 5; end += 1) {
    const byte = input[end]
    if (byte === undefined) break
    length += (byte & 0x7f) * 2 ** (7 * end)
    if (byte < 0x80) return { length, end: end + 1 }
  }
  throw malformed(0)
}

function malformed(at: number): Problem {
  return new Problem('invalid_encoding', `The body is not snappy: the block is malformed at byte ${at}.`)
}
