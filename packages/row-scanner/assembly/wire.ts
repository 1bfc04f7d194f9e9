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

/** Why nothing more is read if it is not a fault of Protocol Buffers: in JSON, a field has a wrong type, or the request is rejected. */
export const WRONG_TYPE: i32 = 1
const STOPPED: i32 = 2

/**
 * Reads the fields of messages of Protocol Buffers. Each call of `next` must be followed by a call that reads or skips the value. A known field
 * with a value of another type is an unknown field, as for official decoders, so tags are compared.
 */
export class Wire {
  static at: i32 = 0
  /** The end of the message that is read. */
  static end: i32 = 0
  /** Why nothing is read any more: one of the numbers above, or a string. */
  static fault: i32 = 0
  /** The place of the fault, or that of the field with a wrong type: see `messages.ts`. */
  static faultAt: i32 = 0
  /** How many groups are open. */
  private static groups: i32 = 0
  /** Why the request is rejected, if it is stopped. */
  static result: i32 = 0

  static begin(from: i32, end: i32): void {
    Wire.at = from
    Wire.end = end
    Wire.fault = 0
    Wire.result = 0
    Wire.groups = 0
  }

  static fail(fault: string): void {
    Wire.stop(changetype<i32>(fault), Wire.at)
  }

  /** All loops end. */
  static stop(fault: i32, at: i32): void {
    if (Wire.fault !== 0) return
    Wire.fault = fault
    Wire.faultAt = at
  }

  /** @param field the address of a field, and the part of it that is wrong */
  static failType(field: i32): void {
    Wire.stop(WRONG_TYPE, field)
  }

  /** Stops for a result of a record that is not 0. */
  static check(result: i32): void {
    Wire.result = result
    if (result !== 0) Wire.stop(STOPPED, 0)
  }

  /** Reads the tag of the next field. @returns 0 at the end of the message */
  static next(): i32 {
    if (Wire.at >= Wire.end || Wire.fault !== 0) return 0
    const tag = Wire.varint()
    if (tag >> 32 !== 0 || tag < 8) Wire.fail('a field has an invalid number')
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
    for (let shift: u64 = 0; shift < VARINT_BITS_MAX; shift += 7) {
      const byte: u64 = load<u8>(Wire.at)
      if (!Wire.pass(1)) return 0
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    Wire.fail(Wire.at < Wire.end ? 'a number has more than ten bytes' : 'a value is longer than the message')
    return 0
  }

  /** Reads eight bytes, or four that are the lower half. */
  static fixed(bytes: i32): u64 {
    const at = Wire.at
    return Wire.pass(bytes) ? load<u64>(at) : 0
  }

  /** Passes a string, bytes or a message, which is mostly short. @returns its start. `at` is its end */
  @inline
  static bytes(): i32 {
    const start = Wire.at + 1
    const length = <i32>load<u8>(start - 1)
    if (length >= 0x80 || start + length > Wire.end) return Wire.longBytes()
    Wire.at = start + length
    return start
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
    else Wire.fail('a field has an invalid type')
  }

  private static skipGroup(tag: i32): void {
    Wire.groups += 1
    if (Wire.groups > GROUPS_MAX) Wire.fail('groups are nested too deeply')
    const end = tag - START_GROUP + END_GROUP
    for (let inner = Wire.next(); inner !== end; inner = Wire.next()) {
      if (inner === 0) return Wire.fail('a group has no end')
      Wire.skip(inner)
    }
    Wire.groups -= 1
  }

  private static pass(bytes: u64): bool {
    if (bytes > <u64>(Wire.end - Wire.at)) {
      Wire.fail('a value is longer than the message')
      return false
    }
    Wire.at += <i32>bytes
    return true
  }
}
