import * as columns from '../columns'
import { Draft } from '../draft'
import { fieldAfter } from '../fields'
import { KEPT, RECORD } from '../memory'
import { metadataDepthMax, metadataNamesMax } from '../limits'
import { Metadata } from '../metadata'
import { countNames, Names } from '../names'
import { Records } from '../records'
import { LONE } from '../strings'
import { Path } from '../surrogates'
import { LEVELS_SHIFT, Node, NODE_BYTES, NULL, REPEATED, Tape, TEXT } from '../tape'
import { levelNode, named, ORIGINAL_LEVEL, USED } from './constants'
import { Members, Texts } from './members'
import { Time } from './times'
import * as uses from './uses'
import { Use, Uses } from './uses'

/** More levels than any valid entry has, with those around the metadata. */
const AROUND_LEVELS: i32 = 4

/** Whether a record is nested more deeply than any valid entry. The nodes of others are complete. */
export function isTooDeep(record: i32): bool {
  return Node.of(record).levels > metadataDepthMax + AROUND_LEVELS
}

/** Names of a record that become columns. */
const COLUMN_NAMES_MAX: i32 = 32

/** Whether an object has more names than a valid entry. Nothing is made of it then. */
export function hasTooManyNames(object: i32): bool {
  return countNames(object) > metadataNamesMax + COLUMN_NAMES_MAX
}

/** Names that are added to those in the body. */
const ADDED_NAMES_MAX: i32 = 32

const recordMembers = memory.data(16)
const keptMembers = memory.data(16)

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
  private static room: i32 = 0

  static get record(): Members {
    return changetype<Members>(recordMembers)
  }

  static get kept(): Members {
    return changetype<Members>(keptMembers)
  }

  /**
   * Begins a record.
   *
   * @param names how many names it may have, with those of its envelope
   * @param mayBeLone whether anything in it may have half of a surrogate pair
   */
  static begin(names: i32, mayBeLone: bool): void {
    Mapper.tapeEnd = Tape.end
    Mapper.namesEnd = Names.mark
    Mapper.mayBeLone = mayBeLone
    Mapper.room = names + ADDED_NAMES_MAX
    Texts.clear()
    Mapper.record.clear(RECORD, Mapper.room)
  }

  /** Maps the members that were added. */
  static map(): void {
    const record = Mapper.record
    Uses.find(record)
    Draft.clear()
    Draft.hasTime = Use.of(uses.TIME).isFound
    Draft.timeUs = Time.us
    const level = Use.of(uses.LEVEL)
    Draft.set(columns.level, level.isFound ? level.node : levelNode(0))
    const message = Use.of(uses.MESSAGE)
    Draft.set(columns.message, message.isFound ? message.node : jsonOf(record))
    Draft.set(columns.service, Use.of(uses.SERVICE).node)
    Draft.set(columns.environment, Use.of(uses.ENVIRONMENT).node)
    Draft.set(columns.source, Use.of(uses.SOURCE).node)
    Draft.set(columns.url, Use.of(uses.URL).node)
    Draft.set(columns.pathname, Use.of(uses.PATHNAME).node)
    Draft.set(columns.stack, Use.of(uses.STACK).node)
    Uses.prune()
    keep(record, Mapper.kept, Mapper.room)
    if (level.isFound && !Uses.isExact) Mapper.kept.addFree(named(ORIGINAL_LEVEL, level.value))
  }

  /** Takes the record. @returns 0, or why the request is rejected */
  static take(): i32 {
    Metadata.begin()
    const kept = Mapper.kept
    const last = kept.last
    for (let at = kept.first; at < last; at += 4) Metadata.addMember(load<i32>(at))
    Metadata.finish()
    const isLone = Mapper.mayBeLone && findLone(kept)
    const result = isLone ? Records.rejectUnicode(Path.start, Path.end) : Records.take()
    Tape.end = Mapper.tapeEnd
    Names.rewind(Mapper.namesEnd)
    return result
  }
}

/** The record as JSON. */
function jsonOf(record: Members): i32 {
  Metadata.beginAt(Texts.end)
  const last = record.last
  for (let at = record.first; at < last; at += 4) Metadata.addMember(load<i32>(at))
  Metadata.finish()
  const node = Tape.end
  Tape.add(TEXT, Metadata.start, Metadata.end)
  Texts.end = Metadata.end
  return node
}

/** Collects the metadata of the record, and all values that are not used. */
function keep(record: Members, kept: Members, room: i32): void {
  const metadata = Use.of(uses.METADATA)
  const hasMetadata = metadata.isFound
  kept.clear(KEPT, hasMetadata ? room + countNames(metadata.node) : room)
  if (hasMetadata) kept.addAll(metadata.node)
  const last = record.last
  for (let at = record.first; at < last; at += 4) {
    const name = load<i32>(at)
    if (!isKept(name)) continue
    if (hasMetadata) kept.addFree(name)
    else kept.add(name)
  }
}

function isKept(address: i32): bool {
  const name = Node.of(address)
  const value = Node.of(name.next)
  if (name.has(USED)) return !Uses.isWhole(address) && isLeft(name.next)
  // For a field of the contract, null means that it is absent.
  return value.kind !== NULL || fieldAfter(-1, name) === 0
}

/** Whether an object has members that are not used. Its levels are then those of the others. */
function isLeft(object: i32): bool {
  const node = Node.of(object)
  const end = node.next
  let levels = 0
  let count = 0
  for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    if (name.has(REPEATED)) continue
    count += 1
    levels = max(levels, Node.of(name.next).levels)
  }
  node.head = (node.head & ~(0xff << LEVELS_SHIFT)) | (min(levels + 1, 0xff) << LEVELS_SHIFT)
  return count > 0
}

/** Finds half of a surrogate pair in what is stored, and writes its path. */
function findLone(kept: Members): bool {
  Path.begin()
  const isFound =
    isLoneUse(uses.MESSAGE, '/message') ||
    isLoneUse(uses.SERVICE, '/service') ||
    isLoneUse(uses.URL, '/url') ||
    isLoneUse(uses.PATHNAME, '/pathname') ||
    isLoneUse(uses.STACK, '/stack')
  if (isFound) return true
  Path.addMetadata()
  const start = Path.end
  const last = kept.last
  for (let at = kept.first; at < last; at += 4) {
    const name = Node.of(load<i32>(at))
    if (name.has(LONE)) return true
    const isAdded = Path.add(name)
    if (Path.find(name.next)) {
      if (!isAdded) Path.end = start
      return true
    }
    Path.end = start
  }
  // The JSON of a record has names of values that are used, and of what was left out of them.
  Path.begin()
  return !Use.of(uses.MESSAGE).isFound && isLoneRecord()
}

function isLoneUse(field: i32, path: string): bool {
  const use = Use.of(field)
  if (!use.isFound || !Node.of(use.value).has(LONE)) return false
  Path.addText(path)
  return true
}

function isLoneRecord(): bool {
  const record = Mapper.record
  const last = record.last
  for (let at = record.first; at < last; at += 4) {
    const name = Node.of(load<i32>(at))
    if (!name.has(LONE) && !Node.of(name.next).has(LONE)) continue
    Path.addText('/message')
    return true
  }
  return false
}
