import * as codes from '../codes'
import { Decoded } from '../draft'
import { METADATA, OTLP_PART } from '../errors'
import { metadataDepthMax } from '../limits'
import { Literal, literal } from '../literals'
import { hashOf } from '../names'
import { setInteger } from '../scalars'
import { ESCAPED, LONE } from '../strings'
import {
  ARRAY,
  BYTES,
  FALSE,
  KIND,
  NAME,
  Node,
  NODE_BYTES,
  NULL,
  OBJECT,
  REPEATED,
  STRING,
  Tape,
  TRUE,
} from '../tape'
import { Integer, readDouble } from './json-numbers'
import * as parts from './parts'
import { addNull, Budget, close, extend, open, Rejection, setRange } from './values'

const KEY: i32 = literal('key')
const VALUE: i32 = literal('value')
const VALUES: i32 = literal('values')
const STRING_VALUE: i32 = literal('stringValue')
const BOOL_VALUE: i32 = literal('boolValue')
const INT_VALUE: i32 = literal('intValue')
const DOUBLE_VALUE: i32 = literal('doubleValue')
const ARRAY_VALUE: i32 = literal('arrayValue')
const KVLIST_VALUE: i32 = literal('kvlistValue')
const BYTES_VALUE: i32 = literal('bytesValue')

/** The members of a message: those with a value that is not null, which stands for the default value. */
export class Members {
  /** Moves from a name to the first one with a value. @param end of the object @returns its address, or at least `end` */
  @inline
  static from(address: i32, end: i32): i32 {
    while (address < end && (Node.of(address).has(REPEATED) || Node.of(Node.of(address).next).kind === NULL))
      address = Node.of(address + NODE_BYTES).next
    return address
  }

  @inline
  static first(object: i32): i32 {
    return Members.from(object + NODE_BYTES, Node.of(object).next)
  }

  @inline
  static after(name: i32, end: i32): i32 {
    return Members.from(Node.of(name + NODE_BYTES).next, end)
  }
}

export function isName(name: Node, known: i32): bool {
  return Literal.of(known).isName(name)
}

/** @returns false */
export function rejectPart(part: i32): bool {
  return Rejection.set(codes.WRONG_TYPE, OTLP_PART - part)
}

export function checkKind(address: i32, kind: i32, part: i32): bool {
  return Node.of(address).kind === kind || rejectPart(part)
}

/**
 * Reads an AnyValue as the last value of the tape. The last of several values counts.
 *
 * @param source the node of the AnyValue
 * @param address the node of the value
 * @param level of the object or array that has the value
 * @returns false if the record is rejected
 */
export function readAnyValue(source: i32, address: i32, level: i32): bool {
  if (!checkKind(source, OBJECT, parts.VALUE)) return false
  const end = Node.of(source).next
  for (let at = Members.first(source); at < end; at = Members.after(at, end)) {
    const name = Node.of(at)
    const value = name.next
    if (isName(name, STRING_VALUE)) {
      if (!checkKind(value, STRING, parts.STRING_VALUE)) return false
      copyNode(address, value)
    } else if (isName(name, INT_VALUE)) {
      if (!Integer.read(value) || !Integer.isSigned(i64.MAX_VALUE)) return rejectPart(parts.INT_VALUE)
      setInteger(address, Integer.signed)
    } else if (isName(name, BOOL_VALUE)) {
      const kind = Node.of(value).kind
      if (kind !== TRUE && kind !== FALSE) return rejectPart(parts.BOOL_VALUE)
      copyNode(address, value)
    } else if (isName(name, DOUBLE_VALUE)) {
      if (!readDouble(address, value)) return rejectPart(parts.DOUBLE_VALUE)
    } else if (isName(name, ARRAY_VALUE)) {
      if (!readList(value, address, ARRAY, level + 1, parts.ARRAY_VALUE)) return false
      continue
    } else if (isName(name, KVLIST_VALUE)) {
      if (!readList(value, address, OBJECT, level + 1, parts.KVLIST_VALUE)) return false
      continue
    } else if (isName(name, BYTES_VALUE)) {
      if (!readBytes(address, value)) return rejectPart(parts.BYTES_VALUE)
    } else continue
    Tape.end = address + NODE_BYTES
  }
  return true
}

function copyNode(address: i32, source: i32): void {
  const node = Node.of(source)
  setRange(address, node.head & (KIND | ESCAPED | LONE), node.start, node.end)
}

/** Reads an ArrayValue or a KeyValueList. */
function readList(source: i32, address: i32, kind: i32, level: i32, part: i32): bool {
  if (level > metadataDepthMax) return Rejection.set(codes.TOO_DEEP, METADATA)
  if (!checkKind(source, OBJECT, part)) return false
  // It replaces a value of another member.
  Tape.end = address + NODE_BYTES
  setRange(address, NULL, 0, 0)
  open(address, kind)
  const end = Node.of(source).next
  for (let at = Members.first(source); at < end; at = Members.after(at, end)) {
    const name = Node.of(at)
    if (!isName(name, VALUES)) continue
    if (kind === OBJECT) {
      if (!readKeyValues(name.next, address, level, parts.VALUES, parts.VALUES_ELEMENT)) return false
    } else if (!readElements(name.next, address, level)) return false
  }
  return true
}

function readElements(source: i32, array: i32, level: i32): bool {
  if (!checkKind(source, ARRAY, parts.VALUES)) return false
  const end = Node.of(source).next
  for (let at = source + NODE_BYTES; at < end; at = Node.of(at).next) {
    if (!Budget.takeElement()) return false
    const element = addNull()
    if (!readAnyValue(at, element, level)) return false
    close(element)
    extend(array, element)
  }
  return true
}

/**
 * Reads an array of KeyValues as members of the last object of the tape.
 *
 * @param level of the object in metadata
 */
export function readKeyValues(source: i32, object: i32, level: i32, part: i32, partOfElement: i32): bool {
  if (!checkKind(source, ARRAY, part)) return false
  const end = Node.of(source).next
  for (let at = source + NODE_BYTES; at < end; at = Node.of(at).next) {
    if (!checkKind(at, OBJECT, partOfElement) || !readKeyValue(at, object, level)) return false
  }
  return true
}

function readKeyValue(source: i32, object: i32, level: i32): bool {
  const address = Tape.end
  const name = Node.of(address)
  Tape.add(NAME | ESCAPED, 0, 0)
  const value = addNull()
  const end = Node.of(source).next
  for (let at = Members.first(source); at < end; at = Members.after(at, end)) {
    const member = Node.of(at)
    if (isName(member, KEY)) {
      if (!checkKind(member.next, STRING, parts.KEY)) return false
      setName(name, Node.of(member.next))
    } else if (isName(member, VALUE)) {
      if (!readAnyValue(member.next, value, level)) return false
    }
  }
  if (!Budget.takeMember(name)) return false
  name.head |= hashOf(name.start, name.end)
  close(value)
  extend(object, value)
  Node.of(object).head |= name.head & LONE
  return true
}

/** Like the name of a member of JSON. */
function setName(name: Node, key: Node): void {
  Decoded.read(key)
  name.head = NAME | (key.head & (ESCAPED | LONE))
  name.start = Decoded.start
  name.end = Decoded.end
}

/** Reads base64 of both alphabets. @returns whether it is valid */
function readBytes(address: i32, value: i32): bool {
  const node = Node.of(value)
  if (node.kind !== STRING) return false
  // Decoded bytes take the place of the text, or of a copy.
  Decoded.read(node)
  const start = Decoded.start
  let end = Decoded.end
  for (let i = 0; i < 2; i += 1) if (end > start && load<u8>(end - 1) === PAD) end -= 1
  let to = start
  let bits: u32 = 0
  let count = 0
  for (let at = start; at < end; at += 1) {
    const digit = base64Value(load<u8>(at))
    if (digit < 0) return false
    bits = (bits << 6) | digit
    count += 6
    if (count < 8) continue
    count -= 8
    store<u8>(to, <u8>(bits >> count))
    to += 1
  }
  setRange(address, BYTES, start, to)
  return true
}

const PAD: u8 = 0x3d

function base64Value(byte: u8): i32 {
  const upper = byte - 0x41
  if (upper < 26) return upper
  const lower = byte - 0x61
  if (lower < 26) return lower + 26
  const digit = byte - 0x30
  if (digit < 10) return digit + 52
  if (byte === 0x2b || byte === 0x2d) return 62
  return byte === 0x2f || byte === 0x5f ? 63 : -1
}
