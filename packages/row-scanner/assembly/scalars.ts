import { copy, MINUS, QUOTE } from './bytes'
import { writeDouble } from './doubles'
import { writeInteger, writeSigned } from './integers'
import { Literal, literal } from './literals'
import { BYTES, DOUBLE, HEX, INTEGER, Node } from './tape'

/** The offset of the number in a node of an `INTEGER`, of `DIGITS` or of a `DOUBLE`: it takes the place of the start and the end. */
const NUMBER_OFFSET: i32 = 4

export function setInteger(address: i32, value: i64): void {
  Node.of(address).head = INTEGER
  store<i64>(address, value, NUMBER_OFFSET)
}

export function integerOf(address: i32): i64 {
  return load<i64>(address, NUMBER_OFFSET)
}

export function setDouble(address: i32, value: f64): void {
  Node.of(address).head = DOUBLE
  store<f64>(address, value, NUMBER_OFFSET)
}

/** Writes the JSON of a node whose kind is above `TEXT`. @returns its end */
export function writeScalar(to: i32, address: i32): i32 {
  const node = Node.of(address)
  const kind = node.kind
  if (kind === INTEGER) return writeSigned(to, integerOf(address))
  if (kind === DOUBLE) {
    const value = load<f64>(address, NUMBER_OFFSET)
    return isFinite(value) ? writeDouble(to, value) : writeInfinite(to, value)
  }
  store<u8>(to, QUOTE)
  let end = to + 1
  if (kind === BYTES) end = writeBase64(end, node.start, node.end)
  else if (kind === HEX) end = writeHex(end, node.start, node.end)
  else end = writeInteger(end, integerOf(address))
  store<u8>(end, QUOTE)
  return end + 1
}

const NAN: i32 = literal('NaN')
const INFINITY: i32 = literal('Infinity')

/** JSON has no form for these doubles: they become strings. */
function writeInfinite(to: i32, value: f64): i32 {
  store<u8>(to, QUOTE)
  to += 1
  if (value < 0) {
    store<u8>(to, MINUS)
    to += 1
  }
  const word = Literal.of(isNaN(value) ? NAN : INFINITY)
  // With its quote.
  return copy(to, word.start, word.bytes + 1)
}

/** The length of bytes in base64. */
export function base64Bytes(bytes: i32): i32 {
  return ((bytes + 2) / 3) * 4
}

const PAD: u8 = 0x3d

function writeBase64(to: i32, from: i32, end: i32): i32 {
  let at = from
  for (; at + 3 <= end; at += 3) {
    const three = ((<u32>load<u8>(at)) << 16) | ((<u32>load<u8>(at + 1)) << 8) | load<u8>(at + 2)
    store<u8>(to, digitOf(three >> 18))
    store<u8>(to + 1, digitOf((three >> 12) & 63))
    store<u8>(to + 2, digitOf((three >> 6) & 63))
    store<u8>(to + 3, digitOf(three & 63))
    to += 4
  }
  if (at === end) return to
  const isOne = at + 1 === end
  const last: u32 = ((<u32>load<u8>(at)) << 8) | (isOne ? 0 : load<u8>(at + 1))
  store<u8>(to, digitOf(last >> 10))
  store<u8>(to + 1, digitOf((last >> 4) & 63))
  store<u8>(to + 2, isOne ? PAD : digitOf((last << 2) & 63))
  store<u8>(to + 3, PAD)
  return to + 4
}

const ALPHABET: i32 = literal('ABCDEFGHIJKLMNOPQRSTUVWXYZ')
const LOWER_ALPHABET: i32 = literal('abcdefghijklmnopqrstuvwxyz0123456789+/')

function digitOf(value: u32): u8 {
  return load<u8>(
    value < 26 ? Literal.of(ALPHABET).start + value : Literal.of(LOWER_ALPHABET).start + (value - 26),
  )
}

/** Writes bytes as lower-case hexadecimal digits, sixteen bytes at a time. */
function writeHex(to: i32, from: i32, end: i32): i32 {
  // `0123456789abcdef`
  const digits = i64x2(0x3736353433323130, 0x6665646362613938)
  for (let at = from; at < end; at += 16) {
    const bytes = v128.load(at)
    const high = i8x16.swizzle(digits, i8x16.shr_u(bytes, 4))
    const low = i8x16.swizzle(digits, v128.and(bytes, i8x16.splat(15)))
    const target = to + ((at - from) << 1)
    v128.store(target, v128.shuffle<i8>(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23))
    v128.store(
      target + 16,
      v128.shuffle<i8>(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31),
    )
  }
  return to + ((end - from) << 1)
}
