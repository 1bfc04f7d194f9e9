// Values of attributes and bodies. A value is first null. Lists grow at the end of the tape: official decoders merge repeated messages.
import * as codes from '../codes'
import { metadataBytesMax, metadataDepthMax } from '../limits'
import { Literal, literal } from '../literals'
import { BASE64, BOOLEAN, CHARACTERS, field, FLOAT, INT64, message, READ, READ_EACH } from '../messages'
import { readMessage, readText } from '../messages'
import { Metadata } from '../metadata'
import { hashOf, hasRepeated, Names } from '../names'
import { keepNumber } from '../scalars'
import { ESCAPED, LONE } from '../strings'
import { ARRAY, INTEGER, NAME, Node, NODE_BYTES, NULL, OBJECT, STRING, Tape } from '../tape'
import { Wire } from '../wire'

/** Levels of metadata: `attributes` and `resource` are on level 2, the attributes of `scope` on level 3. A body is a member of metadata. */
export const BODY_LEVEL: i32 = 1
export const ATTRIBUTES_LEVEL: i32 = 2
export const SCOPE_ATTRIBUTES_LEVEL: i32 = 3

/**
 * Bounds the values of a record, a resource or a scope: their levels, and the least bytes that they take as JSON, repeated names included. A
 * value may take only two bytes of a body, and its node has sixteen.
 */
export class Budget {
  private static bytes: i32 = 0
  /** Of the object or array whose elements are read. */
  static level: i32 = 0

  static begin(level: i32): void {
    // The addition is for the names of attributes that become columns, and for a body.
    Budget.bytes = metadataBytesMax + 256
    Budget.level = level
  }

  /** @returns whether there are as many bytes left: the others go */
  static take(bytes: i32): bool {
    if (bytes > Budget.bytes) {
      Metadata.note(codes.TOO_LARGE)
      return false
    }
    Budget.bytes -= bytes
    return true
  }
}
/** An element has at least one character and a separator, and a member in addition two quotes and a colon. */
const ELEMENT_BYTES: i32 = 2
const MEMBER_BYTES: i32 = 5

const WORD_NULL: i32 = literal('null')

const ARRAY_VALUE: i32 = message()
const KEY_VALUE_LIST: i32 = message()
const KEY_VALUE: i32 = message()
const ANY_VALUE: i32 = message()

/** Reads an AnyValue into the last value of the tape. The last of several values counts. */
export function readAnyValue(value: i32, source: i32): void {
  if (source === 0 && passShortText()) return readText(value)
  readMessage(ANY_VALUE, value, source)
  if (Node.of(value).kind >= INTEGER) keepNumber(value)
  if (!Node.of(value).isContainer) Tape.end = value + NODE_BYTES
}

/** The tags of texts or messages that are the fields 1 and 2. */
const FIRST_TAG: u8 = 0x0a
const SECOND_TAG: u8 = 0x12

/** Most values are a text that is shorter than 126 bytes. @returns whether the cursor is now at such a text */
function passShortText(): bool {
  const at = Wire.at
  const bytes = <i32>load<u8>(at)
  if (bytes >= 0x80 || at + bytes >= Wire.end) return false
  if (load<u8>(at + 1) !== FIRST_TAG || <i32>load<u8>(at + 2) !== bytes - 2) return false
  Wire.at = at + 2
  return true
}

function readArray(value: i32, source: i32): void {
  readContainer(ARRAY, ARRAY_VALUE, value, source)
}

function readList(value: i32, source: i32): void {
  readContainer(OBJECT, KEY_VALUE_LIST, value, source)
}

function readContainer(kind: i32, table: i32, value: i32, source: i32): void {
  if (Node.of(value).kind !== kind) {
    Tape.end = value
    Tape.add(kind, 0, 0)
  }
  // A list at this level goes, so nobody needs what is in it.
  if (Budget.level === metadataDepthMax) return pass(source)
  Budget.level += 1
  readMessage(table, value, source)
  Budget.level -= 1
}

function pass(source: i32): void {
  if (source === 0) Wire.bytes()
}

function readElement(array: i32, source: i32): void {
  if (!Budget.take(ELEMENT_BYTES)) return pass(source)
  const element = addNull()
  readAnyValue(element, source)
  extend(array, element)
}

/** Reads a KeyValue of Protocol Buffers: what most of a body consists of. The table is for JSON. */
function readPair(name: i32, value: i32): void {
  const outer = Wire.enter()
  for (let tag = Wire.next(); tag !== 0; tag = Wire.next()) {
    if (tag === FIRST_TAG) readText(name)
    else if (tag === SECOND_TAG) readAnyValue(value, 0)
    else Wire.skip(tag)
  }
  Wire.leave(outer)
}

/** Reads a KeyValue as a member of the last object of the tape. */
function readKeyValue(object: i32, source: i32): void {
  const address = Tape.add(NAME, 0, 0)
  const name = Node.of(address)
  const value = addNull()
  if (source === 0) readPair(address, value)
  else readMessage(KEY_VALUE, address, source)
  if (name.has(ESCAPED)) {
    name.start = Names.decode(name.start, name.end)
    name.end = Names.end
  }
  // Only the name of a JSON text without escapes has quotes around it.
  const flags = name.kind === STRING ? name.head & (ESCAPED | LONE) : ESCAPED
  name.head = NAME | flags | hashOf(name.start, name.end)
  if (Budget.take(MEMBER_BYTES + name.bytes)) extend(object, value)
  else Tape.end = address
}

/** @param value the place of the attributes of a part, after their name */
export function readAttribute(value: i32, source: i32): void {
  readKeyValue(Node.of(value - NODE_BYTES).next, source)
}

function addNull(): i32 {
  return Tape.add(NULL, Literal.of(WORD_NULL).start, Literal.of(WORD_NULL).end)
}

/** Takes the last value of the tape into the array or the object before it. */
function extend(container: i32, address: i32): void {
  close(address)
  Node.of(address).next = Tape.end
  Node.of(container).next = Tape.end
}

/** Resolves repeated names in a value that gets no more elements. */
export function close(address: i32): void {
  if (Node.of(address).kind === OBJECT) hasRepeated(address)
}

field(ARRAY_VALUE, 1, 'values', READ_EACH, 0, changetype<i32>(readElement))
field(KEY_VALUE_LIST, 1, 'values', READ_EACH, 0, changetype<i32>(readKeyValue))
field(KEY_VALUE, 1, 'key', CHARACTERS, 0)
field(KEY_VALUE, 2, 'value', READ, 1, changetype<i32>(readAnyValue))
field(ANY_VALUE, 1, 'stringValue', CHARACTERS, 0)
field(ANY_VALUE, 2, 'boolValue', BOOLEAN, 0)
field(ANY_VALUE, 3, 'intValue', INT64, 0)
field(ANY_VALUE, 4, 'doubleValue', FLOAT, 0)
field(ANY_VALUE, 5, 'arrayValue', READ, 0, changetype<i32>(readArray))
field(ANY_VALUE, 6, 'kvlistValue', READ, 0, changetype<i32>(readList))
field(ANY_VALUE, 7, 'bytesValue', BASE64, 0)
