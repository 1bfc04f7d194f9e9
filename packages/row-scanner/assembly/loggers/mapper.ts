import * as codes from '../codes'
import * as columns from '../columns'
import { Draft } from '../draft'
import { ENTRY } from '../errors'
import { fieldAfter } from '../fields'
import { metadataDepthMax, metadataNamesMax } from '../limits'
import { literal } from '../literals'
import { KEPT, RECORD } from '../memory'
import { Metadata } from '../metadata'
import { countNames, Names } from '../names'
import { Records } from '../records'
import { LONE } from '../strings'
import { Path } from '../surrogates'
import { ARRAY, Node, NODE_BYTES, NULL, OBJECT, Tape, TEXT } from '../tape'
import { LOG } from './levels'
import { Members, MEMBERS_BYTES, named } from './members'
import { Use, USED, Uses } from './uses'
import { levelNode } from './words'

/** More levels than any valid entry has, with those around the metadata. */
const AROUND_LEVELS: i32 = 4
/** Names of a record that become columns, and those that are added to it. */
const MORE_NAMES: i32 = 32
export const NAMES_MAX: i32 = metadataNamesMax + MORE_NAMES

const ORIGINAL_LEVEL = literal('originalLevel')
/** The members of the current record, and those of its metadata. */
export const record: Members = changetype<Members>(memory.data(MEMBERS_BYTES))
export const kept: Members = changetype<Members>(memory.data(MEMBERS_BYTES))

/** Why a value is no record, or larger than any valid entry: nothing is made of it then. 0 if it is a record. */
export function faultOf(value: i32): i32 {
  if (Node.of(value).kind !== OBJECT) return codes.WRONG_TYPE
  // The nodes of values with fewer levels are complete.
  if (Node.of(value).levels > metadataDepthMax + AROUND_LEVELS) return codes.TOO_DEEP
  // An object with few nodes has few names.
  const hasManyNodes = Node.of(value).next - value > NAMES_MAX * 2 * NODE_BYTES
  return hasManyNodes && countNames(value) > NAMES_MAX ? codes.TOO_MANY_NAMES : 0
}

/** Takes a value, or each element of an array in its place. @returns 0, or why the request is rejected */
export function takeEach(value: i32, take: (value: i32) => i32): i32 {
  const end = Node.of(value).next
  let result = 0
  for (
    let at = Node.of(value).kind === ARRAY ? value + NODE_BYTES : value;
    at < end && result === 0;
    at = Node.of(at).next
  )
    result = take(at)
  return result
}

/** Takes a record that cannot become a row. */
export function reject(code: i32, where: i32): i32 {
  Metadata.discard()
  return Records.reject(code, where)
}

/**
 * Makes a row of a JSON record of any common logger: `entryOfRecord` of @sluice/records, on the tape.
 *
 * A source begins a record, adds its members, maps it, may add to its metadata, and takes it.
 */
export class Mapper {
  /** Where the nodes and the names begin that are made for the record. */
  private static tapeEnd: i32 = 0
  private static namesEnd: i32 = 0
  /** Of all that is in it. */
  static flags: i32 = 0
  /** Whether the message is the JSON of the record, and has half of a surrogate pair. */
  static isJsonLone: bool = false

  /** @param object has all members @param flags of values that are added to them */
  static begin(object: i32, flags: i32 = 0): void {
    Mapper.open(Node.of(object).head | flags)
    // Its names have nodes.
    Mapper.clear((Node.of(object).next - object) / NODE_BYTES)
  }

  /** @param names of the record and of its metadata, at most @param numberMax the largest number that one may get */
  static clear(names: i32, numberMax: i32 = i32.MAX_VALUE): void {
    record.clear(RECORD, names + MORE_NAMES)
    kept.clear(KEPT, names + MORE_NAMES, numberMax)
  }

  /** Begins a record without members. */
  static open(flags: i32): void {
    Mapper.tapeEnd = Tape.end
    Mapper.namesEnd = Names.mark
    Mapper.flags = flags
    Mapper.isJsonLone = false
  }

  /** Maps the members that were added. @param timeUs the time of the record if it is known: another one in it is metadata */
  static map(timeUs: i64 = 0): void {
    if (Mapper.hasTooManyNames) return
    Draft.clear()
    Uses.find(record)
    if (timeUs !== 0 && Draft.timeUs !== timeUs) Use.of(columns.timestamp).name = 0
    Draft.hasTime = Use.of(columns.timestamp).isFound
    for (let column = columns.timestamp + 1; column < columns.metadata; column += 1)
      Draft.set(column, Use.of(column).node)
    const level = Use.of(columns.level)
    if (!level.isFound) Draft.set(columns.level, levelNode(LOG))
    if (!Use.of(columns.message).isFound) Draft.set(columns.message, jsonOfRecord())
    Uses.mark()
    if (Use.of(columns.metadata).isFound) kept.addAll(Use.of(columns.metadata).node)
    const known = kept.last
    const last = record.last
    for (let at = record.first; at < last; at += 4) {
      const name = Node.of(load<i32>(at))
      // For a field of the contract, null means that it is absent.
      const isAbsent = Node.of(name.next).kind === NULL && fieldAfter(-1, name) !== 0
      if (!isAbsent && !name.has(USED)) kept.add(load<i32>(at), known)
    }
    if (level.isFound && !Uses.isExact) kept.add(named(ORIGINAL_LEVEL, level.value))
  }

  private static get hasTooManyNames(): bool {
    return record.count > NAMES_MAX
  }

  /** Takes the record. @returns 0, or why the request is rejected */
  static take(): i32 {
    if (Mapper.hasTooManyNames) return Mapper.reject(codes.TOO_MANY_NAMES, ENTRY)
    Metadata.begin()
    writeMembers(kept)
    return Mapper.close(Records.take((Mapper.flags & LONE) !== 0 && findLone()))
  }

  /** Takes a record that cannot become a row. */
  static reject(code: i32, where: i32): i32 {
    return Mapper.close(reject(code, where))
  }

  private static close(result: i32): i32 {
    Tape.end = Mapper.tapeEnd
    Names.rewind(Mapper.namesEnd)
    return result
  }
}

/** Writes the members that are not used for columns. */
function writeMembers(members: Members): void {
  const last = members.last
  for (let at = members.first; at < last; at += 4)
    if (!Node.of(load<i32>(at)).has(USED)) Metadata.addMember(load<i32>(at))
  Metadata.finish()
}

/** The JSON of the record, as a string. It has the names of values that are used, and what is left out of them. */
function jsonOfRecord(): i32 {
  Metadata.beginAt(Names.mark)
  writeMembers(record)
  let flags = 0
  for (let at = record.first; at < record.last; at += 4) {
    const name = Node.of(load<i32>(at))
    flags |= name.head | Node.of(name.next).head
  }
  Mapper.isJsonLone = (flags & LONE) !== 0
  return keepWritten()
}

/** Keeps what was written at `Names.mark`, as a string. */
export function keepWritten(): i32 {
  const node = Tape.end
  Tape.add(TEXT, Metadata.start, Metadata.end)
  Names.keep(Metadata.end)
  return node
}

/** Finds half of a surrogate pair in what is stored, and writes its path. */
function findLone(): bool {
  Path.begin()
  Path.addMetadata()
  const last = kept.last
  for (let at = kept.first; at < last; at += 4)
    if (!Node.of(load<i32>(at)).has(USED) && Path.findInMember(load<i32>(at))) return true
  for (let column = columns.timestamp + 1; column < columns.metadata; column += 1) {
    const value = Draft.valueOf(column)
    if (value === 0 || !Node.of(value).has(LONE)) continue
    Path.begin()
    Path.addColumn(column)
    return true
  }
  Path.begin()
  Path.addColumn(columns.message)
  return Mapper.isJsonLone
}
