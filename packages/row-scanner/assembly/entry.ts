import * as codes from './codes'
import * as columns from './columns'
import { Decoded, Draft } from './draft'
import { ENTRY, Errors, PATH } from './errors'
import { Field, FIELD_BYTES, fieldOf, fieldOfName, FIELDS_END } from './fields'
import { errorsPerEntryMax, metadataNamesMax } from './limits'
import { FIELDS } from './memory'
import { Metadata } from './metadata'
import { countNames, Taken } from './names'
import { afterCharacters, LONE } from './strings'
import { Path } from './surrogates'
import { CLEAN, NULL, Node, NODE_BYTES, OBJECT, REPEATED, STRING, USED } from './tape'
import { Timestamp } from './timestamps'

/** The place of the current entry among those of the body, and the number of its errors. */
let index: i32 = 0
let errors: i32 = 0
/** The first name of the entry without a column; 0 if there is none. */
let unknown: i32 = 0
/** The timestamp of the entry, decoded. Both are 0 if it has none. */
export let timestampStart: i32 = 0
export let timestampEnd: i32 = 0

/**
 * Makes a row of an entry, or adds its errors: all errors of its structure, or else the first of its content.
 *
 * @param address the node of a value that may be an entry
 * @param place its place among the entries of the body
 */
export function takeEntry(address: i32, place: i32): void {
  index = place
  errors = 0
  if (Node.of(address).kind !== OBJECT) {
    fail(codes.WRONG_TYPE, ENTRY)
    return
  }
  findValues(address)
  checkFields()
  if (errors > 0) return
  const metadata = Draft.valueOf(columns.metadata)
  if (metadata !== 0 && unknown !== 0) leaveOutNamesOf(metadata, address)
  readMetadata(metadata, address)
  if (checkContent(address, metadata)) Draft.finish()
}

function fail(code: i32, where: i32): bool {
  if (errors < errorsPerEntryMax) Errors.add(index, code, where)
  errors += 1
  return false
}

function findValues(object: i32): void {
  Draft.clear()
  unknown = 0
  let column = -1
  for (let at = object + NODE_BYTES; Node.of(object).next > at; at = Node.afterMember(at)) {
    const name = Node.of(at)
    if (name.has(REPEATED)) continue
    const field = fieldOfName(name, column)
    if (field === 0) {
      if (unknown === 0) unknown = at
    } else {
      column = Field.of(field).column
      name.head |= USED
      Draft.set(column, name.next)
    }
  }
}

function checkFields(): void {
  for (let address = FIELDS; address < FIELDS_END; address += FIELD_BYTES) {
    const field = Field.of(address)
    if (field.isRequired && Draft.valueOf(field.column) === 0) fail(codes.MISSING, field.index)
  }
  for (let address = FIELDS; address < FIELDS_END; address += FIELD_BYTES) {
    const field = Field.of(address)
    const value = Draft.valueOf(field.column)
    if (value !== 0) checkField(field, value)
  }
}

/** Adds the errors of a field. A null in an optional field is removed. */
function checkField(field: Field, address: i32): void {
  const value = Node.of(address)
  const kind = value.kind
  if (kind === NULL && !field.isRequired) Draft.set(field.column, 0)
  else if (kind !== (field.isObject ? OBJECT : STRING)) fail(codes.WRONG_TYPE, field.index)
  else if (field.isObject) {
    if (countNames(address) > metadataNamesMax) fail(codes.TOO_MANY_NAMES, field.index)
  } else {
    if (field.hasChoices) {
      Decoded.read(value)
      if (!field.allows(Decoded.start, Decoded.end)) fail(codes.NOT_ALLOWED, field.index)
    }
    const charactersMax = field.charactersMax
    const isLong = value.bytes > charactersMax
    if (isLong && afterCharacters(value.start, value.end, charactersMax, true) < value.end)
      fail(codes.TOO_LONG, field.index)
  }
}

/** Unknown fields become metadata, unless the metadata has a member with the name. */
function leaveOutNamesOf(metadata: i32, object: i32): void {
  Taken.beginWith(metadata)
  for (let at = unknown; Node.of(object).next > at; at = Node.afterMember(at)) {
    const name = Node.of(at)
    // Names with half of a surrogate pair are not told apart.
    if (!name.has(USED | LONE) && Taken.find(name) !== 0) name.head |= REPEATED
  }
}

function readMetadata(metadata: i32, object: i32): void {
  Metadata.faults = 0
  if (metadata !== 0 && unknown === 0 && Node.of(metadata).has(CLEAN)) {
    Metadata.use(Node.of(metadata))
    return
  }
  Metadata.begin()
  if (metadata !== 0) Metadata.addMembers(metadata)
  if (unknown !== 0) Metadata.addMembers(object, unknown)
  Metadata.finish()
}

/** Checks the limits of the metadata, the timestamp, and that all strings have a UTF-8 form. */
function checkContent(object: i32, metadata: i32): bool {
  // An entry may have only unknown fields.
  const where = metadata === 0 ? ENTRY : fieldOf(columns.metadata).index
  for (let code = codes.TOO_DEEP; code <= codes.TOO_MANY_NAMES; code += 1)
    if (Metadata.has(code)) return fail(code, where)
  if (!readTimestamp()) return fail(codes.INVALID_TIMESTAMP, fieldOf(columns.timestamp).index)
  if (!Path.findIn(object, index)) return true
  const error = Errors.add(index, codes.INVALID_UNICODE, PATH)
  error.start = Path.start
  error.end = Path.end
  return false
}

function readTimestamp(): bool {
  timestampStart = 0
  timestampEnd = 0
  const address = Draft.valueOf(columns.timestamp)
  if (address === 0) return true
  Decoded.read(Node.of(address))
  timestampStart = Decoded.start
  timestampEnd = Decoded.end
  Draft.hasTime = Timestamp.read(timestampStart, timestampEnd)
  Draft.timeUs = Timestamp.us
  return Draft.hasTime
}
