import { hashOf } from '../names'
import { setDouble, setInteger } from '../scalars'
import { ESCAPED } from '../strings'
import { ARRAY, BYTES, NAME, Node, NODE_BYTES, OBJECT, Tape, TEXT } from '../tape'
import { isUtf8 } from '../utf8'
import * as faults from './faults'
import { addNull, Budget, close, extend, open, setBoolean, setRange } from './values'
import { bytesTag, fixed64Tag, varintTag, Wire } from '../wire'

/**
 * Arrays and key-value lists in one another. Official decoders stop at half of it: they count messages, and each level has two. What is above
 * the limit of metadata is rejected later, with its record alone.
 */
const NESTING_MAX: i32 = 100

/** The value that is read may not be an array or an object, because it is not the last one of the tape. */
let isScalar: bool = false
/** Whether it was one. */
let isSkipped: bool = false

/** Reads the string at the cursor into a node. */
export function readText(address: i32): void {
  const start = Wire.bytes()
  if (Wire.fault === 0 && !isUtf8(start, Wire.at)) Wire.fail(faults.NOT_UTF8)
  setRange(address, TEXT, start, Wire.at)
}

/**
 * Reads an AnyValue at the cursor into the node of a value that nothing was added after, unless it is an array or an object.
 *
 * @returns whether it is not
 */
export function readScalar(address: i32): bool {
  isScalar = true
  isSkipped = false
  readAnyValue(address, 0)
  isScalar = false
  return !isSkipped
}

/**
 * Reads the AnyValue at the cursor into the last value of the tape. Official decoders merge a repeated message: lists get longer, other values
 * are replaced.
 *
 * @param level of the object or array that has the value
 */
export function readAnyValue(address: i32, level: i32): void {
  const outer = Wire.enter()
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === bytesTag(5) || tag === bytesTag(6)) {
      if (isScalar) {
        isSkipped = true
        Wire.skip(tag)
      } else if (tag === bytesTag(5)) readElements(address, level + 1)
      else readMembers(address, level + 1)
      continue
    }
    if (tag === bytesTag(1)) readText(address)
    else if (tag === varintTag(2)) setBoolean(address, Wire.varint() !== 0)
    else if (tag === varintTag(3)) setInteger(address, Wire.varint())
    else if (tag === fixed64Tag(4)) setDouble(address, reinterpret<f64>(Wire.fixed64()))
    else if (tag === bytesTag(7)) readBytes(address)
    else {
      Wire.skip(tag)
      continue
    }
    if (!isScalar) Tape.end = address + NODE_BYTES
  }
  Wire.leave(outer)
}

function readBytes(address: i32): void {
  const start = Wire.bytes()
  setRange(address, BYTES, start, Wire.at)
}

function isNestedTooDeeply(level: i32): bool {
  if (level <= NESTING_MAX) return false
  Wire.fail(faults.NESTING)
  return true
}

function readElements(address: i32, level: i32): void {
  const outer = Wire.enter()
  if (isNestedTooDeeply(level)) return
  open(address, ARRAY)
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag !== bytesTag(1)) {
      Wire.skip(tag)
      continue
    }
    if (!Budget.takeElement()) return Wire.fail(faults.REJECTED)
    const element = addNull()
    readAnyValue(element, level)
    if (Wire.fault !== 0) break
    close(element)
    extend(address, element)
  }
  Wire.leave(outer)
}

function readMembers(address: i32, level: i32): void {
  const outer = Wire.enter()
  if (isNestedTooDeeply(level)) return
  open(address, OBJECT)
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === bytesTag(1)) readKeyValue(address, level)
    else Wire.skip(tag)
  }
  Wire.leave(outer)
}

/**
 * Reads the KeyValue at the cursor as a member of the last object of the tape.
 *
 * @param level of the object in metadata
 */
export function readKeyValue(object: i32, level: i32): void {
  const outer = Wire.enter()
  const address = Tape.end
  const name = Node.of(address)
  Tape.add(NAME, Wire.at, Wire.at)
  const value = addNull()
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === bytesTag(1)) {
      const start = Wire.bytes()
      if (Wire.fault === 0 && !isUtf8(start, Wire.at)) Wire.fail(faults.NOT_UTF8)
      name.start = start
      name.end = Wire.at
    } else if (tag === bytesTag(2)) readAnyValue(value, level)
    else Wire.skip(tag)
  }
  Wire.leave(outer)
  if (Wire.fault !== 0) return
  if (!Budget.takeMember(name)) return Wire.fail(faults.REJECTED)
  // It is written as a string with escapes: no quotes are around it.
  name.head = NAME | ESCAPED | hashOf(name.start, name.end)
  close(value)
  extend(object, value)
}
