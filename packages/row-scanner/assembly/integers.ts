import { MINUS } from './bytes'

const EIGHT_DIGITS: u64 = 100_000_000
const ZEROS: u64 = 0x3030303030303030

/** Writes an unsigned integer in decimal digits. Up to seven bytes after them are written. @returns its end */
export function writeInteger(to: i32, value: u64): i32 {
  if (value >= EIGHT_DIGITS) {
    const last = value / EIGHT_DIGITS
    const end = writeInteger(to, last)
    store<u64>(end, digitsOf(<u32>(value - last * EIGHT_DIGITS)) | ZEROS)
    return end + 8
  }
  const digits = digitsOf(<u32>value)
  const zeros = <i32>(min(ctz(digits), 56) >> 3)
  store<u64>(to, (digits | ZEROS) >> ((<u64>zeros) << 3))
  return to + 8 - zeros
}

/** The digits of a number below 10^8, the first one in the lowest byte: halves, then pairs, then digits are divided at the same time. */
function digitsOf(value: u32): u64 {
  const upper = value / 10_000
  let digits = <u64>upper | ((<u64>(value - upper * 10_000)) << 32)
  const hundreds = ((digits * 10_486) >> 20) & 0x0000007f0000007f
  digits = hundreds | ((digits - hundreds * 100) << 16)
  const tens = ((digits * 103) >> 10) & 0x000f000f000f000f
  return tens | ((digits - tens * 10) << 8)
}

export function writeSigned(to: i32, value: i64): i32 {
  if (value >= 0) return writeInteger(to, value)
  store<u8>(to, MINUS)
  return writeInteger(to + 1, -value)
}
