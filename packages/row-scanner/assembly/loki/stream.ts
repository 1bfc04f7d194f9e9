import { isEqual } from '../bytes'
import * as codes from '../codes'
import * as columns from '../columns'
import { Decoded, Draft } from '../draft'
import { LABELS as AT_LABELS, METADATA, UNIX_NANO } from '../errors'
import { literal } from '../literals'
import { isExact, levelOf, LOG, PINO, readLevelText } from '../loggers/levels'
import { named } from '../loggers/members'
import { findEnvironment, levelNode } from '../loggers/words'
import { setDigits } from '../messages'
import { Metadata } from '../metadata'
import { countNames, Names, Taken } from '../names'
import { Records } from '../records'
import { LONE } from '../strings'
import { Path } from '../surrogates'
import { CLEAN, Node, NODE_BYTES, NULL, OBJECT, REPEATED, Tape } from '../tape'
import { addFree, ENVIRONMENT_ROLES, isUsable, LEVEL_ROLES, NAMES_MAX } from './names'
import { ORIGINAL_LEVEL_ROLE, roleOf, ROLES, SERVICE_ROLES, TIME_ROLE } from './names'

/** As members of metadata. Loki's own limits allow about 46 KiB. The labels of a stream are in the row of each of its lines. */
const LABELS_BYTES_MAX: i32 = 16_384
/** The start of the year 2262. */
const END_NS: u64 = 9_214_646_400_000_000_000
const NS_PER_US: u64 = 1_000
const TIME_UNIX_NANO: i32 = literal('timeUnixNano')
const ORIGINAL_LEVEL: i32 = literal('originalLevel')
/** Of the name of a label: the structured metadata of the line has the same name. Names have no other use for the flag. */
const REPLACED: i32 = CLEAN

/** For each role: the node of the name of the label that has it and can be used; 0 if there is none. Then the same for the current line. */
const ofLabels = <i32>memory.data(ROLES * 4)
const ofLine = <i32>memory.data(ROLES * 4)

/** The names of the members that become columns; 0 if there is none. */
class Columns {
  static level: i32 = 0
  static service: i32 = 0
  static environment: i32 = 0

  static has(name: i32): bool {
    return name === Columns.level || name === Columns.service || name === Columns.environment
  }
}

/** What the lines of a stream have in common, and how a line becomes a record. A line stays the message, even if it is JSON. */
export class Stream {
  /** Whether the stream has valid labels. */
  static isValid: bool = false
  /** The node of an object, and the number of its names. */
  private static labels: i32 = 0
  private static names: i32 = 0
  /** Whether names of the line are taken, one of them is that of a label, and one has no free number. */
  private static isIndexed: bool = false
  private static isShared: bool = false
  private static isCrowded: bool = false
  /** The new name of a label with half of a surrogate pair; 0 if there is none. */
  private static loneRenamed: i32 = 0

  /** @param labels the node of an object; 0 if there are none */
  static begin(labels: i32, isValid: bool): void {
    if (labels === 0) {
      labels = Tape.end
      Tape.add(OBJECT, 0, 0)
    }
    Stream.labels = labels
    Stream.names = countNames(labels)
    Stream.isValid = isValid && Node.of(labels).bytes <= LABELS_BYTES_MAX && Stream.names <= NAMES_MAX
    memory.fill(ofLabels, 0, ROLES * 4)
    if (!Stream.isValid) return
    const end = Node.of(labels).next
    for (let name = labels + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next)
      if (!Node.of(name).has(REPEATED)) note(ofLabels, name)
  }

  /** Rejects a line whose stream has no valid labels. */
  static rejectLine(): i32 {
    Metadata.discard()
    return Records.reject(codes.WRONG_TYPE, AT_LABELS)
  }

  /**
   * Takes a line as the next record.
   *
   * @param nanos since 1970; 0 if the line has no time
   * @param message the node of a string
   * @param metadata the node of an object with structured metadata; 0 if there is none
   * @returns 0, or why the request is rejected
   */
  static takeLine(nanos: u64, message: i32, metadata: i32): i32 {
    Metadata.begin()
    const count = metadata === 0 ? 0 : countNames(metadata)
    if (count > NAMES_MAX) return Records.reject(codes.TOO_MANY_NAMES, METADATA)
    if (nanos >= END_NS) return Records.reject(codes.INVALID_TIMESTAMP, UNIX_NANO)
    const names = Names.mark
    const nodes = Tape.end
    memory.copy(ofLine, ofLabels, ROLES * 4)
    Stream.isIndexed = false
    Stream.isShared = false
    Stream.isCrowded = false
    Stream.loneRenamed = 0
    if (count > 0) Stream.noteMetadata(metadata, count)
    Draft.clear()
    Draft.hasTime = nanos !== 0
    Draft.timeUs = nanos / NS_PER_US
    Draft.set(columns.message, message)
    const reading = takeColumns()
    Stream.writeMetadata(metadata, nanos, isExact(reading))
    const isLone = Stream.findLone(message, metadata)
    if (Stream.isShared) forgetReplaced(Stream.labels)
    const result = Stream.isCrowded ? Records.reject(codes.TOO_MANY_NAMES, METADATA) : Records.take(isLone)
    Names.rewind(names)
    Tape.end = nodes
    return result
  }

  private static writeMetadata(metadata: i32, nanos: u64, isExact: bool): void {
    if (metadata !== 0) addMembers(metadata)
    addMembers(Stream.labels)
    if (Stream.isShared) Stream.writeRenamed(metadata)
    if (nanos % NS_PER_US !== 0) Stream.addOwn(TIME_ROLE, TIME_UNIX_NANO, addDigits(nanos))
    if (Columns.level !== 0 && !isExact)
      Stream.addOwn(ORIGINAL_LEVEL_ROLE, ORIGINAL_LEVEL, Node.of(Columns.level).next)
    Metadata.finish()
  }

  /** Structured metadata replaces labels with the same names. */
  private static noteMetadata(metadata: i32, count: i32): void {
    Stream.index(count)
    const end = Node.of(metadata).next
    for (let address = metadata + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
      const name = Node.of(address)
      if (name.has(REPEATED)) continue
      note(ofLine, address)
      if (Taken.take(address)) continue
      Node.of(Taken.find(name)).head |= REPLACED
      Stream.isShared = true
    }
  }

  /** Takes the names of the labels. @param count of the names in structured metadata, each of which may get a number */
  private static index(count: i32): void {
    Stream.isIndexed = true
    Taken.begin(Stream.names + 2 * count + 2)
    const end = Node.of(Stream.labels).next
    for (let name = Stream.labels + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next)
      if (!Node.of(name).has(REPEATED)) Taken.take(name)
  }

  /** Adds the labels whose name another value in the structured metadata has. */
  private static writeRenamed(metadata: i32): void {
    const end = Node.of(metadata).next
    for (let address = metadata + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
      const name = Node.of(address)
      const label = name.has(REPEATED) ? address : Taken.find(name)
      if (label === address || isSameValue(Node.of(Node.of(label).next), Node.of(name.next))) continue
      const renamed = Stream.addRenamed(name, Node.of(label).next)
      if (
        Stream.loneRenamed === 0 &&
        renamed !== 0 &&
        (name.has(LONE) || Node.of(Node.of(label).next).has(LONE))
      )
        Stream.loneRenamed = renamed
    }
  }

  /** Adds a member of the mapping, under a name that neither a label nor structured metadata has. */
  private static addOwn(role: i32, name: i32, value: i32): void {
    const own = named(name, value)
    if (load<i32>(ofLine + (role << 2)) !== 0) Stream.addRenamed(Node.of(own), value)
    else Metadata.addMember(own)
  }

  /** Adds a member whose name gets the first number that makes it a new one. @returns that name; 0 if it would be a large number */
  private static addRenamed(name: Node, value: i32): i32 {
    if (!Stream.isIndexed) Stream.index(0)
    const renamed = addFree(name)
    Stream.isCrowded = Stream.isCrowded || renamed === 0
    if (renamed === 0) return 0
    Node.of(renamed).next = value
    Metadata.addMember(renamed)
    return renamed
  }

  /** Finds half of a surrogate pair in what is stored of the line. */
  private static findLone(message: i32, metadata: i32): bool {
    const service = Draft.valueOf(columns.service)
    const isInMessage = Node.of(message).has(LONE)
    const isInService = service !== 0 && Node.of(service).has(LONE)
    if (!isInMessage && !isInService && !isLoneIn(metadata) && !isLoneIn(Stream.labels)) return false
    Path.begin()
    if (isInMessage || isInService) {
      Path.addText(isInMessage ? '/message' : '/service')
      return true
    }
    Path.addMetadata()
    return (
      (isLoneIn(metadata) && Path.findInObject(metadata)) ||
      Path.findInObject(Stream.labels, REPEATED | REPLACED) ||
      (Stream.loneRenamed !== 0 && Path.findInMember(Stream.loneRenamed))
    )
  }
}

function isLoneIn(object: i32): bool {
  return object !== 0 && Node.of(object).has(LONE)
}

/** Keeps the name of a member in its role, if it has one. */
function note(roles: i32, name: i32): void {
  const role = roleOf(Node.of(name))
  if (role >= 0) store<i32>(roles + (role << 2), isUsable(role, Node.of(Node.of(name).next)) ? name : 0)
}

function forgetReplaced(labels: i32): void {
  const end = Node.of(labels).next
  for (let name = labels + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next)
    Node.of(name).head &= ~REPLACED
}

/** The first name of some roles that a usable value has; 0 if there is none. */
function firstOf(role: i32, end: i32): i32 {
  for (; role < end; role += 1) {
    const name = load<i32>(ofLine + (role << 2))
    if (name !== 0) return name
  }
  return 0
}

/** @returns what the line says of its level */
function takeColumns(): i32 {
  Columns.level = firstOf(LEVEL_ROLES, SERVICE_ROLES)
  Columns.service = firstOf(SERVICE_ROLES, ENVIRONMENT_ROLES)
  Columns.environment = firstOf(ENVIRONMENT_ROLES, TIME_ROLE)
  if (Columns.service !== 0) Draft.set(columns.service, Node.of(Columns.service).next)
  let reading = 0
  if (Columns.level !== 0) {
    Decoded.read(Node.of(Node.of(Columns.level).next))
    reading = readLevelText(PINO, Decoded.start, Decoded.end)
  }
  Draft.set(columns.level, levelNode(reading === 0 ? LOG : levelOf(reading)))
  if (Columns.environment !== 0) {
    Decoded.read(Node.of(Node.of(Columns.environment).next))
    Draft.set(columns.environment, findEnvironment(Decoded.start, Decoded.end))
  }
  return reading
}

/** Adds the members of an object that do not become columns. */
function addMembers(object: i32): void {
  const end = Node.of(object).next
  for (let name = object + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next)
    if (!Columns.has(name) && !Node.of(name).has(REPEATED | REPLACED)) Metadata.addMember(name)
}

function addDigits(nanos: u64): i32 {
  const address = Tape.end
  Tape.add(NULL, 0, 0)
  setDigits(address, nanos)
  return address
}

/** Whether a label and structured metadata have the same value. Some clients send their labels once more with each line. */
function isSameValue(a: Node, b: Node): bool {
  if (a.isContainer || b.isContainer || a.isString !== b.isString) return false
  if (!a.isString && a.kind !== b.kind) return false
  Decoded.read(a)
  const start = Decoded.start
  const bytes = Decoded.end - start
  Decoded.read(b)
  return Decoded.end - Decoded.start === bytes && isEqual(start, Decoded.start, bytes)
}
