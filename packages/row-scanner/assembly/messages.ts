// Messages are read by tables, from Protocol Buffers and from their JSON form. Their values become nodes like those of JSON.
import { Literal, literal } from './literals'
import { Decimal, isDouble, readSeverity } from './numbers'
import { keepBase64, keepHex, keepText, setInteger, setRange } from './scalars'
import { ESCAPED, hexValue, LONE } from './strings'
import { ARRAY, DIGITS, DOUBLE, FALSE, INTEGER, KIND, Node, NODE_BYTES, NULL, OBJECT } from './tape'
import { REPEATED, STRING, TEXT, TRUE } from './tape'
import { isUtf8 } from './utf8'
import * as wire from './wire'
import { Wire } from './wire'

// What a field is. The lowest three bits are the type of its value in Protocol Buffers. `types` in `src/messages.ts` has the same order.
export const UINT32: u8 = <u8>wire.VARINT
export const FIXED_UINT32: u8 = 0x08 | <u8>wire.FIXED32
export const SEVERITY: u8 = 0x10 | <u8>wire.VARINT
export const INT64: u8 = 0x18 | <u8>wire.VARINT
export const BOOLEAN: u8 = 0x20 | <u8>wire.VARINT
export const NANOS: u8 = 0x28 | <u8>wire.FIXED64
export const FLOAT: u8 = 0x30 | <u8>wire.FIXED64
export const CHARACTERS: u8 = 0x38 | <u8>wire.BYTES
export const BASE64: u8 = 0x40 | <u8>wire.BYTES
export const ID: u8 = 0x48 | <u8>wire.BYTES
/** A text that may have bytes that are not UTF-8, which become U+FFFD. */
export const ANY_BYTES: u8 = 0x50 | <u8>wire.BYTES
/** A message whose values go to the same target. */
export const MESSAGE: u8 = 0x58 | <u8>wire.BYTES
/** A message that a function reads, any number of them, and the same whatever they are in JSON. */
export const READ: u8 = 0x60 | <u8>wire.BYTES
export const READ_EACH: u8 = 0x68 | <u8>wire.BYTES
export const READ_ANY: u8 = 0x70 | <u8>wire.BYTES

/** Reads a message: in JSON the node of an object, and at the cursor of Protocol Buffers if `source` is 0. */
type Reader = (target: i32, source: i32) => void

/** A field of a message. The entries of its table have the numbers of the fields. Entry 0 stands before the first one. */
@unmanaged
class Field {
  type!: u8
  tag!: u8
  /** Where its node is, from the target of the message. */
  offset!: u16
  name!: i32
  /** A `Reader` or the table of a message. */
  inner!: i32
  /** The field that mostly follows in JSON. The first one follows the last one. */
  next!: i32

  static of(address: i32): Field {
    return changetype<Field>(address)
  }
}
const FIELD_BYTES: i32 = 16
const MESSAGE_BYTES: i32 = 16 * FIELD_BYTES
const MESSAGES_MAX: i32 = 20
/** Parts of the address of a field with a wrong type: in JSON, it must be an array, or have objects. */
const AS_ARRAY: i32 = 1
const AS_ELEMENT: i32 = 2

let tablesEnd: i32 = <i32>memory.data(MESSAGES_MAX * MESSAGE_BYTES, 16)

/** Adds the table of a message, without fields. */
export function message(): i32 {
  const table = tablesEnd
  tablesEnd += MESSAGE_BYTES
  // Fields without a name are unknown.
  Field.of(table).tag = u8.MAX_VALUE
  // The last field.
  Field.of(table).inner = table
  return table
}

/** Adds a field to a table, after the others. @param place that of its node, counted from the target of the message */
export function field(table: i32, number: i32, name: string, type: u8, place: i32, inner: i32 = 0): void {
  const first = Field.of(table)
  const address = table + number * FIELD_BYTES
  const made = Field.of(address)
  made.type = type
  made.tag = <u8>((number << 3) | (type & 7))
  made.offset = <u16>(place * NODE_BYTES)
  made.name = literal(name)
  made.inner = inner
  Field.of(first.inner).next = address
  made.next = first.next
  first.inner = address
}

/**
 * Reads a message that can be rejected without others: in JSON, for the type of a value.
 *
 * @returns where that is, as in an error; 0 if it is valid
 */
export function readAlone(message: i32, target: i32, source: i32): i32 {
  readMessage(message, target, source)
  if (Wire.fault !== wire.WRONG_TYPE) return 0
  Wire.fault = 0
  return -Wire.faultAt
}

export function readMessage(message: i32, target: i32, source: i32): void {
  if (source !== 0) return readObject(message, target, source)
  const outer = Wire.enter()
  readFields(message, target)
  Wire.leave(outer)
}

/** Reads the fields from the cursor to the end of the message. */
export function readFields(message: i32, target: i32): void {
  while (Wire.fault === 0 && Wire.at < Wire.end) {
    let tag = <i32>load<u8>(Wire.at)
    let field = Field.of(message + ((tag << 1) & (MESSAGE_BYTES - FIELD_BYTES)))
    if (<i32>field.tag === tag) Wire.at += 1
    else {
      // An unknown field, or an unusual form of its tag.
      tag = Wire.next()
      field = Field.of(message + ((tag << 1) & (MESSAGE_BYTES - FIELD_BYTES)))
      if (<i32>field.tag !== tag) {
        Wire.skip(tag)
        continue
      }
    }
    const address = target + <i32>field.offset
    const type = field.type
    if (type === CHARACTERS) readText(address)
    else if (type > MESSAGE) changetype<Reader>(field.inner)(address, 0)
    else if (type === MESSAGE) readMessage(field.inner, target, 0)
    else readEncoded(type, address)
  }
}

function readObject(message: i32, target: i32, object: i32): void {
  let next = Field.of(message).next
  const end = Node.of(object).next
  for (let at = object + NODE_BYTES; at < end && Wire.fault === 0; at = Node.of(at + NODE_BYTES).next) {
    const name = Node.of(at)
    // Null stands for the default value.
    if (name.has(REPEATED) || Node.of(name.next).kind === NULL) continue
    const address = fieldOf(name, next)
    if (address === 0) continue
    next = Field.of(address).next
    readMember(address, target, name.next)
  }
}

/** @param first the field to compare with first @returns 0 for an unknown field */
function fieldOf(name: Node, first: i32): i32 {
  let at = first
  do {
    if (Literal.of(Field.of(at).name).isName(name)) return at
    at = Field.of(at).next
  } while (at !== first)
  return 0
}

function readMember(address: i32, target: i32, source: i32): void {
  const field = Field.of(address)
  const type = field.type
  const kind = Node.of(source).kind
  const node = target + <i32>field.offset
  if (type < MESSAGE) {
    if (!readValue(type, node, Node.of(source))) Wire.failType(address)
  } else if (type < READ_EACH) {
    if (kind !== OBJECT) Wire.failType(address)
    else if (type === MESSAGE) readMessage(field.inner, target, source)
    else changetype<Reader>(field.inner)(node, source)
  } else if (kind !== ARRAY) Wire.failType(address + AS_ARRAY)
  else {
    const end = Node.of(source).next
    for (let at = source + NODE_BYTES; at < end && Wire.fault === 0; at = Node.of(at).next) {
      if (type === READ_EACH && Node.of(at).kind !== OBJECT) Wire.failType(address + AS_ELEMENT)
      else changetype<Reader>(field.inner)(node, at)
    }
  }
}

/** Where an element that `READ_ANY` reads is not an object. */
export function elementOf(table: i32, number: i32): i32 {
  return -(table + number * FIELD_BYTES + AS_ELEMENT)
}

export function readText(address: i32): void {
  const start = Wire.bytes()
  if (Wire.fault === 0 && !isUtf8(start, Wire.at)) Wire.fail('a text is not UTF-8')
  setRange(address, TEXT, start, Wire.at)
}

function readEncoded(type: u8, address: i32): void {
  if (type > CHARACTERS) {
    const start = Wire.bytes()
    if (type === ANY_BYTES) keepText(address, start, Wire.at)
    else if (type === ID) keepHex(address, start, Wire.at)
    else keepBase64(address, start, Wire.at)
  } else if (type === NANOS) setInteger(address, DIGITS, Wire.fixed(8))
  else if (type === FLOAT) setInteger(address, DOUBLE, Wire.fixed(8))
  else if (type === FIXED_UINT32) setInteger(address, INTEGER, <u32>Wire.fixed(4))
  else {
    const value = Wire.varint()
    if (type === BOOLEAN) setBoolean(address, value !== 0)
    else setInteger(address, INTEGER, type === SEVERITY ? <i32>value : type === UINT32 ? <u32>value : value)
  }
}

/** Reads a value of JSON. @returns false if it has a wrong type */
function readValue(type: u8, address: i32, node: Node): bool {
  const kind = node.kind
  if (type >= CHARACTERS) {
    if (kind !== STRING) return false
    if (type === ID) lowerHexadecimal(node)
  } else if (type === BOOLEAN) {
    if (kind !== TRUE && kind !== FALSE) return false
  } else if (type !== FLOAT && readInteger(type, node)) {
    setInteger(address, type === NANOS ? DIGITS : INTEGER, Decimal.value)
    return true
  } else if ((type !== FLOAT && type !== INT64) || !isDouble(node)) {
    // JavaScript's exporter sends each whole number as an integer, however large it is: such a number is kept as a double is.
    return false
  }
  setRange(address, node.head & (KIND | ESCAPED | LONE), node.start, node.end)
  return true
}

function readInteger(type: u8, node: Node): bool {
  if (type === NANOS) return Decimal.readInteger(node, false, u64.MAX_VALUE)
  if (type === INT64) return Decimal.readInteger(node, true, i64.MAX_VALUE)
  if (type === SEVERITY) return readSeverity(node) || Decimal.readInteger(node, true, i32.MAX_VALUE)
  return Decimal.readInteger(node, false, u32.MAX_VALUE)
}

/** Ids in hexadecimal become lower-case. Others, such as those in base64, are kept. */
function lowerHexadecimal(node: Node): void {
  const end = node.end
  for (let at = node.start; at < end; at += 1) if (hexValue(load<u8>(at)) < 0) return
  for (let at = node.start; at < end; at += 1) store<u8>(at, load<u8>(at) | 0x20)
}

const WORD_TRUE: i32 = literal('true')
const WORD_FALSE: i32 = literal('false')

function setBoolean(address: i32, value: bool): void {
  const word = Literal.of(value ? WORD_TRUE : WORD_FALSE)
  setRange(address, value ? TRUE : FALSE, word.start, word.end)
}
