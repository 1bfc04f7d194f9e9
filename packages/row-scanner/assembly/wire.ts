/** Types of encoded values. */
export const VARINT: i32 = 0
export const FIXED64: i32 = 1
export const BYTES: i32 = 2
const START_GROUP: i32 = 3
const END_GROUP: i32 = 4
export const FIXED32: i32 = 5

const GROUPS_MAX: i32 = 100
/** From this bit on, a varint would have more than ten bytes. */
const VARINT_BITS_MAX: u64 = 70

// Why a body is not read any further. `faults` in `src/messages.ts` has the same order.
const FIELD_NUMBER: i32 = 1
const FIELD_TYPE: i32 = 2
const GROUP_DEPTH: i32 = 3
const GROUP_END: i32 = 4
const LONG_NUMBER: i32 = 5
const LONG_VALUE: i32 = 6
export const NOT_UTF8: i32 = 7
/** In JSON: a field has a wrong type. Its place is that of the field: see `messages.ts`. */
export const WRONG_TYPE: i32 = 8
/** No faults of the body: a part of it is rejected, or the whole request. */
export const REJECTED: i32 = 9
export const STOPPED: i32 = 10

/**
 * Reads the fields of messages of Protocol Buffers. Each call of `next` must be followed by a call that reads or skips the value. A known field
 * with a value of another type is an unknown field, as for official decoders, so tags are compared.
 */
export class Wire {
  static at: i32 = 0
  /** The end of the message that is read. */
  static end: i32 = 0
  /** Why nothing is read any more: one of the numbers above. */
  static fault: i32 = 0
  static faultAt: i32 = 0
  /** How many groups are open. */
  private static groups: i32 = 0
  /** Why the request is rejected, if it is stopped. */
  static result: i32 = 0

  static begin(from: i32, end: i32): void {
    Wire.at = from
    Wire.end = end
    Wire.fault = 0
    Wire.groups = 0
  }

  /** All loops end. */
  static fail(fault: i32): void {
    if (Wire.fault !== 0) return
    Wire.fault = fault
    Wire.faultAt = Wire.at
  }

  /** Stops for a result of a record that is not 0. */
  static check(result: i32): void {
    if (result === 0) return
    Wire.result = result
    Wire.fail(STOPPED)
  }

  /** Reads the tag of the next field. @returns 0 at the end of the message */
  @inline
  static next(): i32 {
    const at = Wire.at
    if (at >= Wire.end || Wire.fault !== 0) return 0
    const tag = load<u8>(at)
    if (<u8>(tag - 8) >= 0x78) return Wire.longTag()
    Wire.at = at + 1
    return tag
  }

  private static longTag(): i32 {
    const tag = Wire.varint()
    if (tag >> 32 !== 0 || tag < 8) Wire.fail(FIELD_NUMBER)
    return Wire.fault === 0 ? <i32>tag : 0
  }

  /** @returns 64 bits. Further ones are dropped */
  @inline
  static varint(): u64 {
    const at = Wire.at
    const byte = load<u8>(at)
    if (at >= Wire.end || byte >= 0x80) return Wire.longVarint()
    Wire.at = at + 1
    return byte
  }

  private static longVarint(): u64 {
    let value: u64 = 0
    let byte: u64 = 0x80
    for (let shift: u64 = 0; byte >= 0x80; shift += 7) {
      if (Wire.at >= Wire.end) {
        Wire.fail(LONG_VALUE)
        return 0
      }
      if (shift === VARINT_BITS_MAX) {
        Wire.fail(LONG_NUMBER)
        return 0
      }
      byte = load<u8>(Wire.at)
      Wire.at += 1
      value |= (byte & 0x7f) << shift
    }
    return value
  }

  static fixed64(): u64 {
    const at = Wire.at
    return Wire.pass(8) ? load<u64>(at) : 0
  }

  static fixed32(): u32 {
    const at = Wire.at
    return Wire.pass(4) ? load<u32>(at) : 0
  }

  /** Passes a string, bytes or a message. @returns its start. `at` is its end */
  @inline
  static bytes(): i32 {
    const start = Wire.at + 1
    const length = <i32>load<u8>(start - 1)
    if (length < 0x80 && start + length <= Wire.end) {
      Wire.at = start + length
      return start
    }
    return Wire.longBytes()
  }

  private static longBytes(): i32 {
    const length = Wire.varint()
    const start = Wire.at
    Wire.pass(length)
    return start
  }

  /** Enters the message that is the value of the field. @returns the end of the one around it, for `leave` */
  @inline
  static enter(): i32 {
    const outer = Wire.end
    const start = Wire.bytes()
    Wire.end = Wire.at
    Wire.at = start
    return outer
  }

  @inline
  static leave(outer: i32): void {
    Wire.at = Wire.end
    Wire.end = outer
  }

  /** Passes the value of a field. */
  static skip(tag: i32): void {
    const type = tag & 7
    if (type === BYTES) Wire.bytes()
    else if (type === VARINT) Wire.varint()
    else if (type === FIXED64) Wire.pass(8)
    else if (type === FIXED32) Wire.pass(4)
    else if (type === START_GROUP) Wire.skipGroup(tag)
    else Wire.fail(FIELD_TYPE)
  }

  private static skipGroup(tag: i32): void {
    Wire.groups += 1
    if (Wire.groups > GROUPS_MAX) Wire.fail(GROUP_DEPTH)
    const end = tag - START_GROUP + END_GROUP
    for (let inner = Wire.next(); inner !== end; inner = Wire.next()) {
      if (inner === 0) return Wire.fail(GROUP_END)
      Wire.skip(inner)
    }
    Wire.groups -= 1
  }

  private static pass(bytes: u64): bool {
    if (bytes > <u64>(Wire.end - Wire.at)) {
      Wire.fail(LONG_VALUE)
      return false
    }
    Wire.at += <i32>bytes
    return true
  }
}
