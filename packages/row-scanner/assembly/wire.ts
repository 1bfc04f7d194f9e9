import { GROUPS, GROUPS_MAX } from './memory'
import * as faults from './otlp/faults'

/** Types of encoded values. */
const VARINT: i32 = 0
const FIXED64: i32 = 1
const BYTES: i32 = 2
const START_GROUP: i32 = 3
const END_GROUP: i32 = 4
const FIXED32: i32 = 5

/** From this bit on, a varint would have more than ten bytes. */
const VARINT_BITS_MAX: u64 = 70

/** The tags of a field: its number and the type of its value, as they are encoded. */
export function varintTag(field: i32): i32 {
  return (field << 3) | VARINT
}

export function fixed64Tag(field: i32): i32 {
  return (field << 3) | FIXED64
}

export function bytesTag(field: i32): i32 {
  return (field << 3) | BYTES
}

export function fixed32Tag(field: i32): i32 {
  return (field << 3) | FIXED32
}

/**
 * Reads the fields of messages of Protocol Buffers. Each call of `next` must be followed by a call that reads or skips the value. A known field
 * with a value of another type is an unknown field, as for official decoders, so tags are compared.
 */
export class Wire {
  static at: i32 = 0
  /** The end of the message that is read. */
  static end: i32 = 0
  /** Why nothing is read any more: one of `faults.ts`. */
  static fault: i32 = 0
  static faultAt: i32 = 0

  static begin(from: i32, end: i32): void {
    Wire.at = from
    Wire.end = end
    Wire.fault = 0
  }

  /** All loops end. */
  static fail(fault: i32): void {
    if (Wire.fault !== 0) return
    Wire.fault = fault
    Wire.faultAt = Wire.at
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
    if (Wire.fault !== 0) return 0
    if (tag >> 32 !== 0 || tag < 8) {
      Wire.fail(faults.FIELD_NUMBER)
      return 0
    }
    return <i32>tag
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
        Wire.fail(faults.INCOMPLETE_NUMBER)
        return 0
      }
      if (shift === VARINT_BITS_MAX) {
        Wire.fail(faults.LONG_NUMBER)
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
  static bytes(): i32 {
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
    if ((tag & 7) === START_GROUP) Wire.skipGroup(tag)
    else Wire.skipValue(tag & 7)
  }

  private static skipValue(type: i32): void {
    if (type === BYTES) Wire.bytes()
    else if (type === VARINT) Wire.varint()
    else if (type === FIXED64) Wire.pass(8)
    else if (type === FIXED32) Wire.pass(4)
    else Wire.fail(faults.FIELD_TYPE)
  }

  /** Without recursion: a group may contain groups. */
  private static skipGroup(tag: i32): void {
    store<i32>(GROUPS, tag >>> 3)
    for (let open = 1; open > 0;) {
      const inner = Wire.next()
      if (inner === 0) return Wire.fail(faults.GROUP_END)
      const type = inner & 7
      if (type === START_GROUP) {
        if (open === GROUPS_MAX) return Wire.fail(faults.GROUP_DEPTH)
        store<i32>(GROUPS + (open << 2), inner >>> 3)
        open += 1
      } else if (type === END_GROUP) {
        open -= 1
        if (load<i32>(GROUPS + (open << 2)) !== inner >>> 3) return Wire.fail(faults.OTHER_GROUP_END)
      } else Wire.skipValue(type)
    }
  }

  private static pass(bytes: u64): bool {
    if (bytes > <u64>(Wire.end - Wire.at)) {
      Wire.fail(faults.LONG_VALUE)
      return false
    }
    Wire.at += <i32>bytes
    return true
  }
}
