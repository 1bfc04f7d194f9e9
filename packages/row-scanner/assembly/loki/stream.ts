import { isEqual } from '../bytes'
import * as codes from '../codes'
import * as columns from '../columns'
import { Decoded, Draft } from '../draft'
import { LABELS as AT_LABELS } from '../errors'
import { fieldOf } from '../fields'
import { Literal, literal } from '../literals'
import { isExact, levelOf, LOG, PINO, readLevelText } from '../loggers/levels'
import { kept, Mapper, NAMES_MAX, record } from '../loggers/mapper'
import { Members, MEMBERS_BYTES, named } from '../loggers/members'
import { NAME_SET_BYTES, NameSet } from '../loggers/name-set'
import { Use, USED } from '../loggers/uses'
import { findEnvironment, levelNode } from '../loggers/words'
import { COMMON, UNKNOWN } from '../memory'
import { setDigits } from '../messages'
import { Metadata } from '../metadata'
import { hasAtMostCharacters, Records } from '../records'
import { LONE } from '../strings'
import { Node, NODE_BYTES, NULL, OBJECT, Tape } from '../tape'
import { readInner } from '../text'

/** The labels of a stream are in the row of each of its lines. Loki's own default is 15 labels. */
const LABELS_MAX: i32 = 64
/** Loki's own limits allow about 46 KiB. */
const LABELS_BYTES_MAX: i32 = 16_384
/** How many numbers are tried for a line, and for the labels of a stream: each of 16,384 short lines may have names that its labels have. */
const NUMBERS_MAX: i32 = 16
/** The start of the year 2262. */
const END_NS: u64 = 9_214_646_400_000_000_000
const NS_PER_US: u64 = 1_000
const TIME_UNIX_NANO: i32 = literal('timeUnixNano')
const ORIGINAL_LEVEL: i32 = literal('originalLevel')
/** Promtail and Loki write this name if they know none. */
const UNKNOWN_SERVICE: i32 = literal('unknown_service')

/** The names of labels and of structured metadata that may become columns. The first with a usable value counts. */
const ROLES = NameSet.make(
  memory.data(NAME_SET_BYTES, 16),
  'level detected_level severity severity_text service_name service app application app_kubernetes_io_name job environment env deployment_environment deployment_environment_name',
)
const LEVEL_ROLES: i32 = 0
const SERVICE_ROLES: i32 = 4
const ENVIRONMENT_ROLES: i32 = 10
const ROLES_END: i32 = 14

/** The labels of the stream; and after them the structured metadata of the line, to which the labels are added. */
export const labels: Members = changetype<Members>(memory.data(MEMBERS_BYTES))
export const pairs: Members = changetype<Members>(memory.data(MEMBERS_BYTES))

/** What the lines of a stream have in common, and how a line becomes a record. */
export class Stream {
  /** Whether a line that is a JSON object is read as the record of a logger. Otherwise it stays the message. */
  static hasRecords: bool = false
  /** Whether the stream has valid labels. */
  static isValid: bool = false
  /** How the labels were repaired. */
  private static faults: i32 = 0

  /** Begins the labels of a stream. They are added to `labels`. */
  static begin(): void {
    labels.clear(UNKNOWN, LABELS_MAX, NUMBERS_MAX)
    Metadata.faults = 0
  }

  /** Ends the labels. The first that fit stay. */
  static end(isValid: bool): void {
    Stream.isValid = isValid
    let bytes = 0
    const end = labels.last
    labels.last = labels.first
    for (let at = labels.first; at < end; at += 4) {
      const name = Node.of(load<i32>(at))
      const taken = name.bytes + Node.of(name.next).bytes
      const fits = bytes + taken <= LABELS_BYTES_MAX
      if (fits) labels.put(load<i32>(at))
      else Metadata.note(codes.TOO_LARGE)
      if (fits) bytes += taken
    }
    Stream.faults = Metadata.faults
  }

  /** Rejects a line whose stream has no valid labels. */
  static rejectLine(): i32 {
    return Records.reject(codes.WRONG_TYPE, AT_LABELS)
  }

  /** Begins a line. Its structured metadata is added to `pairs`. */
  static beginLine(): void {
    Mapper.open()
    Metadata.faults = Stream.faults
    pairs.clear(labels.last, NAMES_MAX, NUMBERS_MAX)
  }

  /**
   * Takes the line as the next record.
   *
   * @param nanos since 1970; 0 if the line has no time
   * @param message the node of a string
   * @returns 0, or why the request is rejected
   */
  static takeLine(nanos: u64, message: i32): i32 {
    if (nanos >= END_NS) {
      Metadata.note(codes.INVALID_TIMESTAMP)
      nanos = 0
    }
    pairs.room += LABELS_MAX
    join(pairs, labels)
    ROLES.clear()
    for (let at = pairs.first; at < pairs.last; at += 4) ROLES.note(load<i32>(at))
    mapLine(message, nanos / NS_PER_US)
    if (nanos !== 0) {
      Draft.hasTime = true
      Draft.timeUs = nanos / NS_PER_US
    }
    const level = use(columns.level, LEVEL_ROLES, SERVICE_ROLES)
    use(columns.service, SERVICE_ROLES, ENVIRONMENT_ROLES)
    use(columns.environment, ENVIRONMENT_ROLES, ROLES_END)
    if (Draft.valueOf(columns.level) === 0) Draft.set(columns.level, levelNode(LOG))
    kept.numbersLeft = pairs.numbersLeft
    join(kept, pairs)
    if (nanos % NS_PER_US !== 0) kept.addLast(named(TIME_UNIX_NANO, addDigits(nanos)))
    if (level !== 0 && !isExact(reading)) kept.addLast(named(ORIGINAL_LEVEL, Node.of(level).next))
    const result = Mapper.take()
    // Other lines have the same labels.
    for (let role = 0; role < ROLES_END; role += 1)
      if (ROLES.nameOf(role) !== 0) Node.of(ROLES.nameOf(role)).head &= ~USED
    return result
  }
}

/** Makes the draft of a line, with what it says itself. */
function mapLine(message: i32, timeUs: i64): void {
  const line = Stream.hasRecords ? recordIn(Node.of(message)) : 0
  Mapper.clear(pairs.count + (line === 0 ? 0 : (Node.of(line).next - line) / NODE_BYTES))
  Draft.clear()
  if (line === 0) return Draft.set(columns.message, message)
  record.addAll(line)
  Mapper.map(timeUs)
  if (!Use.of(columns.level).isFound) Draft.set(columns.level, 0)
}

/** The node of the object that a line is; 0 if it is none. */
function recordIn(message: Node): i32 {
  if (message.has(LONE)) return 0
  Decoded.read(message)
  const value = readInner(Decoded.start, Decoded.end)
  return value !== 0 && Node.of(value).kind === OBJECT ? value : 0
}

/** Adds members with new names, and those with another value under a name with a number. Clients repeat labels and records in metadata. */
function join(to: Members, from: Members): void {
  const known = to.last
  if (known === to.first) {
    // Nothing to compare with: the names stay where they are, also those that are used.
    to.first = from.first
    to.last = from.last
    return
  }
  let bits: u64 = 0
  for (let at = to.first; at < known; at += 4) bits |= bitOf(load<i32>(at))
  let end = COMMON
  for (let at = from.first; at < from.last; at += 4) {
    const name = load<i32>(at)
    if (Node.of(name).has(USED)) continue
    // If there is a table, it gets each new name: a number could make the same one.
    const same = !to.isIndexed && (bits & bitOf(name)) === 0 ? 0 : to.same(name, known)
    if (same === 0) to.put(name)
    else if (!isSameValue(Node.of(Node.of(name).next), Node.of(Node.of(same).next))) {
      store<i32>(end, name)
      end += 4
    }
  }
  for (let at = COMMON; at < end; at += 4) to.put(to.numbered(Node.of(load<i32>(at))))
}

/** One bit of a hash tells most names from a few others. */
function bitOf(name: i32): u64 {
  return (<u64>1) << ((<u64>Node.of(name).head >>> 8) & 63)
}

/** Uses the first usable value of some roles for a column, or leaves it out if it says no more than the line. @returns its name; 0 if there is none */
function use(column: i32, role: i32, end: i32): i32 {
  const given = Draft.valueOf(column)
  for (; role < end; role += 1) {
    const node = nodeFor(column, ROLES.valueOf(role))
    if (node === 0) continue
    const isLess = column === columns.level && !isExact(reading)
    if (given !== 0 && (isLess || !isSameValue(Node.of(given), Node.of(node)))) return 0
    Draft.set(column, node)
    Node.of(ROLES.nameOf(role)).head |= USED
    return ROLES.nameOf(role)
  }
  return 0
}

/** What the last level says. */
let reading: i32 = 0

/** The node of a column for a value; 0 if it is not usable. */
function nodeFor(column: i32, address: i32): i32 {
  const value = Node.of(address)
  if (address === 0 || !value.isString) return 0
  Decoded.peek(value)
  const start = Decoded.start
  const end = Decoded.end
  if (column === columns.environment) return findEnvironment(start, end)
  if (column === columns.level) {
    reading = readLevelText(PINO, start, end)
    return reading === 0 ? 0 : levelNode(levelOf(reading))
  }
  const unknown = Literal.of(UNKNOWN_SERVICE)
  const isUnknown = start === end || (end - start === unknown.bytes && unknown.isAt(start))
  return !isUnknown && hasAtMostCharacters(value, fieldOf(column).charactersMax) ? address : 0
}

function addDigits(nanos: u64): i32 {
  const address = Tape.end
  Tape.add(NULL, 0, 0)
  setDigits(address, nanos)
  return address
}

/** Whether two values are the same. Clients send values of a record once more as strings. */
function isSameValue(a: Node, b: Node): bool {
  if (a.isContainer || b.isContainer) return false
  Decoded.read(a)
  const start = Decoded.start
  const bytes = Decoded.end - start
  Decoded.read(b)
  return Decoded.end - Decoded.start === bytes && isEqual(start, Decoded.start, bytes)
}
