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
import { Node, NODE_BYTES, NULL, OBJECT, Tape, TEXT } from '../tape'
import { LOG } from './levels'
import { Members, named } from './members'
import { Use, USED, Uses } from './uses'
import { levelNode } from './words'

/** More levels than any valid entry has, with those around the metadata. */
const AROUND_LEVELS: i32 = 4
/** Names of a record that become columns, and those that are added to it. */
const MORE_NAMES: i32 = 32

const ORIGINAL_LEVEL = literal('originalLevel')
/** The members of the current record, and those of its metadata. */
export const record: Members = changetype<Members>(memory.data(16))
export const kept: Members = changetype<Members>(memory.data(16))

/** Why a value is no record, or larger than any valid entry: nothing is made of it then. 0 if it is a record. */
export function faultOf(value: i32): i32 {
  if (Node.of(value).kind !== OBJECT) return codes.WRONG_TYPE
  // The nodes of values with fewer levels are complete.
  if (Node.of(value).levels > metadataDepthMax + AROUND_LEVELS) return codes.TOO_DEEP
  return countNames(value) > metadataNamesMax + MORE_NAMES ? codes.TOO_MANY_NAMES : 0
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
  private static mayBeLone: bool = false

  /** @param object has all members @param flags of values that are added to them */
  static begin(object: i32, flags: i32 = 0): void {
    Mapper.tapeEnd = Tape.end
    Mapper.namesEnd = Names.mark
    Mapper.mayBeLone = ((Node.of(object).head | flags) & LONE) !== 0
    // Its names have nodes.
    const room = (Node.of(object).next - object) / NODE_BYTES + MORE_NAMES
    record.clear(RECORD, room)
    kept.clear(KEPT, room)
  }

  /** Maps the members that were added. */
  static map(): void {
    if (Mapper.hasTooManyNames) return
    Draft.clear()
    Uses.find(record)
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
    if (level.isFound && !Uses.isExact) kept.add(named(ORIGINAL_LEVEL, level.value), kept.last)
  }

  private static get hasTooManyNames(): bool {
    return record.count > metadataNamesMax + MORE_NAMES
  }

  /** Takes the record. @returns 0, or why the request is rejected */
  static take(): i32 {
    Metadata.begin()
    writeMembers(kept)
    const result = Mapper.hasTooManyNames
      ? reject(codes.TOO_MANY_NAMES, ENTRY)
      : Mapper.mayBeLone && findLone()
        ? Records.rejectUnicode(Path.start, Path.end)
        : Records.take()
    Tape.end = Mapper.tapeEnd
    Names.rewind(Mapper.namesEnd)
    return result
  }
}

function writeMembers(members: Members): void {
  const last = members.last
  for (let at = members.first; at < last; at += 4) Metadata.addMember(load<i32>(at))
  Metadata.finish()
}

/** The JSON of the record, as a string. */
function jsonOfRecord(): i32 {
  Metadata.beginAt(Names.mark)
  writeMembers(record)
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
  for (let column = columns.timestamp + 1; column < columns.metadata; column += 1) {
    const use = Use.of(column)
    if (!use.isFound || !Node.of(use.node).has(LONE)) continue
    Path.addColumn(column)
    return true
  }
  Path.addMetadata()
  const last = kept.last
  for (let at = kept.first; at < last; at += 4) if (Path.findInMember(load<i32>(at))) return true
  // The JSON of a record has names of values that are used, and of what was left out of them.
  Path.begin()
  Path.addColumn(columns.message)
  return !Use.of(columns.message).isFound && isRecordLone()
}

function isRecordLone(): bool {
  const last = record.last
  for (let at = record.first; at < last; at += 4) {
    const name = Node.of(load<i32>(at))
    if (name.has(LONE) || Node.of(name.next).has(LONE)) return true
  }
  return false
}
