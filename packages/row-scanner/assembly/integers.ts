import { MINUS, ZERO } from './bytes'

/** Writes an unsigned integer in decimal digits. @returns its end */
export function writeInteger(to: i32, value: u64): i32 {
  let count = 1
  for (let power: u64 = 10; count < 20 && value >= power; power *= 10) count += 1
  let at = to + count
  while (value >> 32 !== 0) {
    at -= 1
    store<u8>(at, <u8>(ZERO + <u8>(value % 10)))
    value /= 10
  }
  let rest = <u32>value
  while (at > to) {
    at -= 1
    store<u8>(at, <u8>(ZERO + <u8>(rest % 10)))
    rest /= 10
  }
  return to + count
}

export function writeSigned(to: i32, value: i64): i32 {
  if (value >= 0) return writeInteger(to, value)
  store<u8>(to, MINUS)
  return writeInteger(to + 1, -value)
}
