import { isEqual } from '../bytes'
import * as codes from '../codes'
import * as columns from '../columns'
import { Decoded, Draft } from '../draft'
import { LABELS as AT_LABELS, METADATA, UNIX_NANO } from '../errors'
import { fieldOf } from '../fields'
import { Literal, literal } from '../literals'
import { isExact, levelOf, LOG, PINO, readLevelText } from '../loggers/levels'
import { kept, Mapper, NAMES_MAX, record as labels, reject } from '../loggers/mapper'
import { named } from '../loggers/members'
import { NAME_SET_BYTES, NameSet } from '../loggers/name-set'
import { USED } from '../loggers/uses'
import { findEnvironment, levelNode } from '../loggers/words'
import { KEPT, RECORD } from '../memory'
import { setDigits } from '../messages'
import { hasAtMostCharacters } from '../records'
import { Node, NULL, Tape } from '../tape'

/** As members of metadata. Loki's own limits allow about 46 KiB. The labels of a stream are in the row of each of its lines. */
const LABELS_BYTES_MAX: i32 = 16_384
/** A name gets numbers from 2 to this one: each line of a stream may have names that its labels have. */
const NUMBER_MAX: i32 = 16
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

/** What the lines of a stream have in common, and how a line becomes a record. A line stays the message, even if it is JSON. */
export class Stream {
  /** Whether the stream has valid labels. */
  static isValid: bool = false
  /** The flags of all labels. */
  private static flags: i32 = 0

  /** Begins the labels of a stream. They are added to `labels`. */
  static begin(flags: i32): void {
    labels.clear(RECORD, NAMES_MAX * 2, NUMBER_MAX)
    Stream.flags = flags
  }

  /** Ends the labels. @param bytes of them */
  static end(isValid: bool, bytes: i32): void {
    Stream.isValid = isValid && bytes <= LABELS_BYTES_MAX && labels.count <= NAMES_MAX && !labels.isCrowded
  }

  /** Rejects a line whose stream has no valid labels. */
  static rejectLine(): i32 {
    return reject(codes.WRONG_TYPE, AT_LABELS)
  }

  /** Begins a line. Its structured metadata is added to `kept`. @param flags of all that is in it */
  static beginLine(flags: i32): void {
    Mapper.open(Stream.flags | flags)
    kept.clear(KEPT, NAMES_MAX * 3, NUMBER_MAX)
  }

  /**
   * Takes the line as the next record.
   *
   * @param nanos since 1970; 0 if the line has no time
   * @param message the node of a string
   * @returns 0, or why the request is rejected
   */
  static takeLine(nanos: u64, message: i32): i32 {
    if (kept.count > NAMES_MAX || kept.isCrowded) return Mapper.reject(codes.TOO_MANY_NAMES, METADATA)
    if (nanos >= END_NS) return Mapper.reject(codes.INVALID_TIMESTAMP, UNIX_NANO)
    addLabels()
    ROLES.clear()
    for (let at = kept.first; at < kept.last; at += 4) ROLES.note(load<i32>(at))
    Draft.clear()
    Draft.hasTime = nanos !== 0
    Draft.timeUs = nanos / NS_PER_US
    Draft.set(columns.message, message)
    Draft.set(columns.level, levelNode(LOG))
    const level = use(columns.level, LEVEL_ROLES, SERVICE_ROLES)
    use(columns.service, SERVICE_ROLES, ENVIRONMENT_ROLES)
    use(columns.environment, ENVIRONMENT_ROLES, ROLES_END)
    if (nanos % NS_PER_US !== 0) kept.add(named(TIME_UNIX_NANO, addDigits(nanos)))
    if (level !== 0 && !isExact(reading)) kept.add(named(ORIGINAL_LEVEL, Node.of(level).next))
    const result = kept.isCrowded ? Mapper.reject(codes.TOO_MANY_NAMES, METADATA) : Mapper.take()
    // Other lines have the same labels.
    for (let role = 0; role < ROLES_END; role += 1)
      if (ROLES.nameOf(role) !== 0) Node.of(ROLES.nameOf(role)).head &= ~USED
    return result
  }
}

/** Adds the labels to the structured metadata. Some clients send their labels once more with each line. */
function addLabels(): void {
  const known = kept.last
  let isShared = false
  for (let at = labels.first; at < labels.last; at += 4) {
    const label = load<i32>(at)
    if (known === kept.first || kept.same(label, known) === 0) kept.put(label)
    else isShared = true
  }
  if (!isShared) return
  for (let at = labels.first; at < labels.last; at += 4) {
    const label = load<i32>(at)
    const same = kept.same(label, known)
    if (same === 0 || same === label) continue
    if (!isSameValue(Node.of(Node.of(label).next), Node.of(Node.of(same).next)))
      kept.put(kept.numbered(Node.of(label)))
  }
}

/** Uses the first usable value of some roles for a column. @returns its name; 0 if there is none */
function use(column: i32, role: i32, end: i32): i32 {
  for (; role < end; role += 1) {
    const node = nodeFor(column, ROLES.valueOf(role))
    if (node === 0) continue
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

/** Whether two values are the same. */
function isSameValue(a: Node, b: Node): bool {
  if (a.isContainer || b.isContainer || a.isString !== b.isString) return false
  if (!a.isString && a.kind !== b.kind) return false
  Decoded.read(a)
  const start = Decoded.start
  const bytes = Decoded.end - start
  Decoded.read(b)
  return Decoded.end - Decoded.start === bytes && isEqual(start, Decoded.start, bytes)
}
