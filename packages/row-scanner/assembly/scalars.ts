// Values of Protocol Buffers, and their texts.
import { QUOTE } from './bytes'
import { writeDouble } from './doubles'
import { writeInteger, writeSigned } from './integers'
import { metadataBytesMax } from './limits'
import { Literal, literals } from './literals'
import { LITERAL_BYTES } from './memory'
import { Names } from './names'
import { DOUBLE, INTEGER, Node, NUMBER, TEXT } from './tape'
import { copyWellFormed, isUtf8 } from './utf8'

/** The offset of the number in a node without a text: it takes the place of the start and the end. */
const NUMBER_OFFSET: i32 = 4

export function setInteger(address: i32, kind: i32, value: i64): void {
  Node.of(address).head = kind
  store<i64>(address, value, NUMBER_OFFSET)
}

export function integerOf(address: i32): i64 {
  return load<i64>(address, NUMBER_OFFSET)
}

export function setRange(address: i32, head: i32, start: i32, end: i32): void {
  const node = Node.of(address)
  node.head = head
  node.start = start
  node.end = end
}

/** Keeps the text that was written at the mark of the names. */
function keep(address: i32, kind: i32, end: i32): void {
  setRange(address, kind, Names.mark, end)
  Names.keep(end)
}

/** Keeps a text as it is, or with U+FFFD in place of what is not UTF-8. */
export function keepText(address: i32, from: i32, end: i32): void {
  if (isUtf8(from, end)) setRange(address, TEXT, from, end)
  else keep(address, TEXT, copyWellFormed(Names.mark, from, end))
}

/** Gives a number its text. */
export function keepNumber(address: i32): void {
  const value = integerOf(address)
  const kind = Node.of(address).kind
  if (kind === DOUBLE) keepDouble(address, reinterpret<f64>(value))
  else if (kind === INTEGER) keep(address, NUMBER, writeSigned(Names.mark, value))
  else keep(address, TEXT, writeInteger(Names.mark, value))
}

const NAN: i32 = literals('NaN Infinity -Infinity')
const INFINITY: i32 = NAN + LITERAL_BYTES
const MINUS_INFINITY: i32 = INFINITY + LITERAL_BYTES

/** JSON has no form for doubles that are not finite: they become strings. These, like those of bytes, are no texts that are looked at: they have their quotes. */
function keepDouble(address: i32, value: f64): void {
  if (isFinite(value)) return keep(address, NUMBER, writeDouble(Names.mark, value))
  const word = Literal.of(isNaN(value) ? NAN : value > 0 ? INFINITY : MINUS_INFINITY)
  setRange(address, NUMBER, word.start - 1, word.end + 1)
}

/** Whether a text is a double that is not finite. */
export function isInfinite(start: i32, end: i32): bool {
  for (let word = NAN; word <= MINUS_INFINITY; word += LITERAL_BYTES)
    if (Literal.of(word).isText(start, end)) return true
  return false
}

const PAD: u8 = 0x3d
const ALPHABET: string = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** @param value of six bits */
function digitOf(value: u32): u8 {
  // The characters of strings have two bytes each.
  return load<u8>(changetype<usize>(ALPHABET) + (value << 1))
}

export function keepBase64(address: i32, from: i32, end: i32): void {
  let to = Names.mark + 1
  store<u8>(to - 1, QUOTE)
  // The text of more bytes has no room anywhere.
  end = min(end, from + metadataBytesMax)
  for (let at = from; at < end; at += 3) {
    const missing = max(at + 3 - end, 0)
    const three = (bswap(load<u32>(at)) >> 8) & (-1 << (missing << 3))
    for (let shift = 18; shift >= 0; shift -= 6) {
      store<u8>(to, shift < missing * 6 ? PAD : digitOf((three >> shift) & 63))
      to += 1
    }
  }
  keep(address, NUMBER, to)
  Node.of(address).end += 1
}

/** Keeps bytes as lower-case hexadecimal digits, sixteen bytes at a time. */
export function keepHex(address: i32, from: i32, end: i32): void {
  // `0123456789abcdef`
  const digits = i64x2(0x3736353433323130, 0x6665646362613938)
  const to = Names.mark
  end = min(end, from + metadataBytesMax)
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
  keep(address, TEXT, to + ((end - from) << 1))
}
