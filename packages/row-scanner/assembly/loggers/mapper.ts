import * as columns from '../columns'
import { Draft } from '../draft'
import { fieldOfName } from '../fields'
import { metadataNamesMax } from '../limits'
import { literal } from '../literals'
import { KEPT, RECORD } from '../memory'
import { Metadata } from '../metadata'
import { Names } from '../names'
import { Records } from '../records'
import { ARRAY, Node, NODE_BYTES, NULL, Tape, TEXT, USED } from '../tape'
import { LOG } from './levels'
import { Members, MEMBERS_BYTES, named } from './members'
import { Use, Uses } from './uses'
import { levelNode } from './words'

/** Names of a record that become columns, and those that are added to it. */
const MORE_NAMES: i32 = 32
export const NAMES_MAX: i32 = metadataNamesMax + MORE_NAMES

const ORIGINAL_LEVEL = literal('originalLevel')
/** The members of the current record, and those of its metadata. */
export const record: Members = changetype<Members>(memory.data(MEMBERS_BYTES))
export const kept: Members = changetype<Members>(memory.data(MEMBERS_BYTES))

/** Takes a value, or each element of an array in its place. @returns 0, or why the request is rejected */
export function takeEach(value: i32, take: (value: i32) => i32): i32 {
  const end = Node.of(value).next
  let at = Node.of(value).kind === ARRAY ? value + NODE_BYTES : value
  let result = 0
  for (; at < end && result === 0; at = Node.of(at).next) result = take(at)
  return result
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

  /** @param object has all members */
  static begin(object: i32): void {
    Mapper.open()
    // Its names have nodes.
    Mapper.clear((Node.of(object).next - object) / NODE_BYTES)
  }

  /** @param names of the record and of its metadata, at most */
  static clear(names: i32): void {
    record.clear(RECORD, names + MORE_NAMES)
    kept.clear(KEPT, names + MORE_NAMES)
  }

  /** Begins a record without members. */
  static open(): void {
    Mapper.tapeEnd = Tape.end
    Mapper.namesEnd = Names.mark
    Metadata.faults = 0
  }

  /** Maps the members that were added. @param timeUs the time of the record if it is known: another one in it is metadata */
  static map(timeUs: i64 = 0): void {
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
      const isAbsent = Node.of(name.next).kind === NULL && fieldOfName(name) !== 0
      if (!isAbsent && !name.has(USED)) kept.add(load<i32>(at), known)
    }
    if (level.isFound && !Uses.isExact) kept.add(named(ORIGINAL_LEVEL, level.value))
  }

  /** Takes the record. @returns 0, or why the request is rejected */
  static take(): i32 {
    const result = Records.take(writeKept)
    Tape.end = Mapper.tapeEnd
    Names.rewind(Mapper.namesEnd)
    return result
  }
}

function writeKept(): void {
  writeMembers(kept)
}

/** Writes the members that are not used for columns. */
function writeMembers(members: Members): void {
  const last = members.last
  for (let at = members.first; at < last; at += 4)
    if (!Node.of(load<i32>(at)).has(USED) && !Metadata.addMember(load<i32>(at))) return
}

/** The JSON of the record, as a string. It has the names of values that are used, and what is left out of them. */
function jsonOfRecord(): i32 {
  Metadata.beginAt(Names.mark, i32.MAX_VALUE)
  writeMembers(record)
  Metadata.finish()
  return keepWritten()
}

/** The JSON of a value that is not a string, as a string. */
export function jsonOf(address: i32): i32 {
  Metadata.writeValue(address, Names.mark, 0)
  return keepWritten()
}

/** Keeps what was written at `Names.mark`, as a string. */
function keepWritten(): i32 {
  const node = Tape.end
  Tape.add(TEXT, Metadata.start, Metadata.end)
  Names.keep(Metadata.end)
  return node
}
