import * as codes from './codes'
import * as columns from './columns'
import { Decoded, Draft } from './draft'
import { ENTRY, Errors, METADATA, PATH } from './errors'
import { Field, fieldAfter } from './fields'
import { errorsPerEntryMax, metadataNamesMax } from './limits'
import { FIELDS, UNKNOWN } from './memory'
import { Metadata } from './metadata'
import { countNames, Taken } from './names'
import { afterCharacters, LONE } from './strings'
import { Path } from './surrogates'
import { CLEAN, NULL, Node, NODE_BYTES, OBJECT, REPEATED, STRING } from './tape'
import { Timestamp } from './timestamps'

/** The place of the current entry among those of the body, and the number of its errors. */
let index: i32 = 0
let errors: i32 = 0
/** The end of the addresses at `UNKNOWN`: of the names of the members that have no column. */
let unknownEnd: i32 = UNKNOWN
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
  if (metadata !== 0) leaveOutNamesOf(metadata)
  readMetadata(metadata)
  if (checkContent(address, metadata)) Draft.finish()
}

function fail(code: i32, where: i32): bool {
  if (errors < errorsPerEntryMax) Errors.add(index, code, where)
  errors += 1
  return false
}

function findValues(object: i32): void {
  Draft.clear()
  unknownEnd = UNKNOWN
  const end = Node.of(object).next
  let column = -1
  for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    if (name.has(REPEATED)) continue
    const field = fieldAfter(column, name)
    if (field === 0) {
      store<i32>(unknownEnd, address)
      unknownEnd += 4
    } else {
      column = Field.of(field).column
      Draft.set(column, name.next)
    }
  }
}

function checkFields(): void {
  for (let address = FIELDS; address !== 0; address = Field.of(address).next) {
    const field = Field.of(address)
    if (field.isRequired && Draft.valueOf(field.column) === 0) fail(codes.MISSING, field.index)
  }
  for (let address = FIELDS; address !== 0; address = Field.of(address).next) {
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
      if (!field.allows(Decoded.start)) fail(codes.NOT_ALLOWED, field.index)
    }
    const charactersMax = field.charactersMax
    const isLong = value.bytes > charactersMax
    if (isLong && afterCharacters(value.start, value.end, charactersMax, true) < value.end)
      fail(codes.TOO_LONG, field.index)
  }
}

/** Unknown fields become metadata, unless the metadata has a member with the name. */
function leaveOutNamesOf(metadata: i32): void {
  if (unknownEnd === UNKNOWN) return
  Taken.beginWith(metadata)
  let kept = UNKNOWN
  for (let at = UNKNOWN; at < unknownEnd; at += 4) {
    const address = load<i32>(at)
    if (Taken.find(Node.of(address)) !== 0) continue
    store<i32>(kept, address)
    kept += 4
  }
  unknownEnd = kept
}

function readMetadata(metadata: i32): void {
  Metadata.faults = 0
  if (metadata !== 0 && unknownEnd === UNKNOWN && Node.of(metadata).has(CLEAN)) {
    Metadata.use(Node.of(metadata))
    return
  }
  Metadata.begin()
  if (metadata !== 0) Metadata.addMembers(metadata)
  for (let at = UNKNOWN; at < unknownEnd; at += 4) Metadata.addMember(load<i32>(at))
  Metadata.finish()
}

/** Checks the limits of the metadata, the timestamp, and that all strings have a UTF-8 form. */
function checkContent(object: i32, metadata: i32): bool {
  if (Metadata.has(codes.TOO_DEEP)) return fail(codes.TOO_DEEP, placeOfMetadata(object))
  if (Metadata.has(codes.TOO_LARGE)) return fail(codes.TOO_LARGE, placeOfMetadata(object))
  if (Metadata.has(codes.TOO_MANY_NAMES)) return fail(codes.TOO_MANY_NAMES, placeOfMetadata(object))
  if (!readTimestamp()) return fail(codes.INVALID_TIMESTAMP, columns.timestampField)
  return !Node.of(object).has(LONE) || !findLoneSurrogate(object, metadata)
}

/** An entry may have only unknown fields. */
function placeOfMetadata(object: i32): i32 {
  const end = Node.of(object).next
  for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const field = fieldAfter(-1, Node.of(address))
    if (field !== 0 && Field.of(field).isObject) return METADATA
  }
  return ENTRY
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

/** Adds an error for a half of a surrogate pair in a name or in a value that is stored. */
function findLoneSurrogate(object: i32, metadata: i32): bool {
  Path.begin()
  if (!findInFields(object) && !(metadata !== 0 && findInMetadata(metadata)) && !findInUnknown()) return false
  errors += 1
  Errors.addPath(Errors.add(index, codes.INVALID_UNICODE, PATH), Path.start, Path.end)
  return true
}

/** Searches the names of all fields, and the values of the fields with a column. */
function findInFields(object: i32): bool {
  const end = Node.of(object).next
  for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    if (name.has(REPEATED)) continue
    if (name.has(LONE)) return true
    const value = Node.of(name.next)
    if (value.kind !== STRING || !value.has(LONE) || fieldAfter(-1, name) === 0) continue
    Path.add(name)
    return true
  }
  return false
}

function findInMetadata(metadata: i32): bool {
  Path.addMetadata()
  if (Path.findInObject(metadata)) return true
  Path.begin()
  return false
}

function findInUnknown(): bool {
  for (let at = UNKNOWN; at < unknownEnd; at += 4) if (Path.findInMember(load<i32>(at))) return true
  return false
}
