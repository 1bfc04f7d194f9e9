/** Reads Protocol Buffers. Nothing is read at or after `end`. */
export class Wire {
  static at: i32 = 0
  /** The last varint. */
  static value: u64 = 0

  /** Reads a varint of at most ten bytes. Bits above the 64th are dropped. */
  static varint(end: i32): bool {
    let at = Wire.at
    if (at >= end) return false
    let byte = load<u8>(at)
    at += 1
    let value: u64 = byte & 0x7f
    for (let shift: u64 = 7; byte >= 0x80; shift += 7) {
      if (at >= end || shift > 63) return false
      byte = load<u8>(at)
      at += 1
      value |= (<u64>(byte & 0x7f)) << shift
    }
    Wire.at = at
    Wire.value = value
    return true
  }

  /** Reads the length of a content that begins at `Wire.at`. @returns the end of the content; -1 if it is after `end` */
  static contentEnd(end: i32): i32 {
    if (!Wire.varint(end) || Wire.value > <u64>(end - Wire.at)) return -1
    return Wire.at + <i32>Wire.value
  }

  /** Passes bytes. @returns their start; -1 if there are fewer */
  static pass(bytes: i32, end: i32): i32 {
    const start = Wire.at
    if (end - start < bytes) return -1
    Wire.at = start + bytes
    return start
  }
}
