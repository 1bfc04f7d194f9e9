/**
 * The bytes of the character at a place of any bytes. Negative for what is not UTF-8: the bytes that decoders replace by one U+FFFD, which are
 * the longest beginning of a character, or one byte.
 */
function characterBytes(at: i32, end: i32): i32 {
  const first = load<u8>(at)
  if (first < 0x80) return 1
  if (first < 0xc2 || first > 0xf4) return -1
  // The second byte has a narrower range after some first bytes: no overlong forms, no surrogates, nothing after U+10FFFF.
  const lowest: u8 = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const highest: u8 = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  const second = load<u8>(at + 1)
  if (at + 1 >= end || second < lowest || second > highest) return -1
  const bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
  for (let i = 2; i < bytes; i += 1) if (at + i >= end || (load<u8>(at + i) & 0xc0) !== 0x80) return -i
  return bytes
}

/** The place of the first byte that is not UTF-8; or the end. */
function utf8End(at: i32, end: i32): i32 {
  while (at < end) {
    const others = i8x16.bitmask(v128.load(at))
    if (others === 0) {
      at += 16
      continue
    }
    at += ctz(others)
    // Characters that are not ASCII follow one another.
    while (at < end && load<u8>(at) >= 0x80) {
      const bytes = characterBytes(at, end)
      if (bytes < 0) return at
      at += bytes
    }
  }
  return end
}

export function isUtf8(from: i32, end: i32): bool {
  return utf8End(from, end) === end
}

/** Copies bytes, with U+FFFD in place of what is not UTF-8, as decoders do. @returns the end of the copy */
export function copyWellFormed(to: i32, from: i32, end: i32): i32 {
  while (true) {
    const valid = utf8End(from, end)
    memory.copy(to, from, valid - from)
    to += valid - from
    if (valid === end) return to
    store<u16>(to, 0xbfef)
    store<u8>(to + 2, 0xbd)
    to += 3
    from = valid - characterBytes(valid, end)
  }
}
