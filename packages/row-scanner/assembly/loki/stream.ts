import { isEqual } from '../bytes'
import * as codes from '../codes'
import * as columns from '../columns'
import { Decoded, Draft } from '../draft'
import { LABELS as AT_LABELS, METADATA, UNIX_NANO } from '../errors'
import { writeInteger } from '../integers'
import { metadataNamesMax } from '../limits'
import { isExact, levelOf, LOG, PINO, readLevelText } from '../loggers/levels'
import { findEnvironment, levelNode } from '../loggers/words'
import { FREE_NUMBERS, LABEL_TABLE, LABEL_TEXT, LABELS, LINE_TABLE } from '../memory'
import { Metadata } from '../metadata'
import { countNames, hashOf, Names } from '../names'
import { Records } from '../records'
import { ESCAPED, LONE } from '../strings'
import { Path } from '../surrogates'
import { NAME, Node, NODE_BYTES, REPEATED, Tape, TEXT } from '../tape'
import {
  ENVIRONMENT_ROLES,
  isUsable,
  LEVEL_ROLES,
  ORIGINAL_LEVEL,
  roleOf,
  ROLES,
  SERVICE_ROLES,
  TIME_UNIX_NANO,
  writeRole,
} from './roles'
import { FIRST_NUMBER, keepNumbered, NameTable, numberedName } from './table'

/** Loki's own limits allow about 46 KiB. The labels of a stream are in the row of each of its lines. */
export const LABELS_BYTES_MAX: i32 = 16_384
/** More names than a row may have, with those that become columns. */
export const NAMES_MAX: i32 = metadataNamesMax + 32
/** The start of the year 2262. */
const END_NS: u64 = 9_214_646_400_000_000_000

@unmanaged
class Label {
  /** The node of its name, which its value follows. */
  name!: i32
  /** It as a member of metadata, with a comma. */
  start!: i32
  end!: i32
  /** The last line that has it under another name, in a column, or not at all. */
  leftOutOf!: i32
}
const LABEL_BYTES: i32 = 16

/** A number that makes a name one that no label has. They are kept for all lines: a stream may have hundreds of names with numbers. */
@unmanaged
class FreeNumber {
  number!: i32
  /** The next one for the same name; 0 if it is not known. */
  next!: i32

  static of(address: i32): FreeNumber {
    return changetype<FreeNumber>(address)
  }
}
const FREE_NUMBER_BYTES: i32 = 8

/** For each role: the node of the name of the label that has it and can be used; 0 if there is none. Then the same for the current line. */
const ofLabels = <i32>memory.data(ROLES * 4)
const ofLine = <i32>memory.data(ROLES * 4)
/** The nodes of the names that the mapping itself adds. */
const ownNames = <i32>memory.data(ROLES * 4)

/** What the lines of a stream have in common, and how a line becomes a record. A line stays the message, even if it is JSON. */
export class Stream {
  private static labelsEnd: i32 = LABELS
  /** The number of the line, for `Label.leftOutOf`. */
  private static line: i32 = 0
  private static freeEnd: i32 = FREE_NUMBERS
  private static isLone: bool = false
  private static levels: i32 = 0
  /** The names of the members that become columns of the current line. */
  private static level: i32 = 0
  private static service: i32 = 0
  private static environment: i32 = 0
  /** Whether the names of the structured metadata are in the table of the line. */
  private static isIndexed: bool = false
  /** Whether the structured metadata has the name of a label. */
  static isShared: bool = false
  /** The new name of a label with half of a surrogate pair; 0 if there is none. */
  private static loneRenamed: i32 = 0

  /** Called when the tape has all of a text. */
  static clear(): void {
    Stream.line = 0
    addOwnName(TIME_UNIX_NANO)
    addOwnName(ORIGINAL_LEVEL)
  }

  static beginLabels(): void {
    Stream.labelsEnd = LABELS
    labels().clear()
    Stream.freeEnd = FREE_NUMBERS
    memory.fill(ofLabels, 0, ROLES * 4)
  }

  /**
   * Adds a label. The second one with a name gets a number.
   *
   * @param name its node, which that of its value follows
   * @returns false if there are too many
   */
  static addLabel(name: i32): bool {
    if (Stream.labelsEnd === LABELS + NAMES_MAX * LABEL_BYTES) return false
    labels().add(name).label = Stream.labelsEnd
    const label = changetype<Label>(Stream.labelsEnd)
    label.name = name
    label.leftOutOf = 0
    Stream.labelsEnd += LABEL_BYTES
    note(ofLabels, name)
    return true
  }

  /** Writes the labels as members of metadata. @returns the number of bytes */
  static endLabels(): i32 {
    Stream.isLone = false
    Metadata.begin()
    const start = Metadata.end
    for (let at = LABELS; at < Stream.labelsEnd; at += LABEL_BYTES) {
      const label = changetype<Label>(at)
      const name = Node.of(label.name)
      label.start = LABEL_TEXT + Metadata.end - start
      Metadata.addMember(label.name)
      label.end = LABEL_TEXT + Metadata.end - start
      if (name.has(LONE) || Node.of(name.next).has(LONE)) Stream.isLone = true
    }
    Stream.levels = Metadata.levels
    const bytes = Metadata.end - start
    memory.copy(LABEL_TEXT, start, min(bytes, LABELS_BYTES_MAX * 8))
    return bytes
  }

  /** Adds structured metadata of a line. The second one with a name gets a number. @param name its node, which that of its value follows */
  static addMetadata(name: i32): void {
    ofThisLine().add(name)
    Stream.isIndexed = true
  }

  static beginLine(): void {
    ofThisLine().clear()
    Stream.isIndexed = false
    Metadata.begin()
  }

  /**
   * Takes a line as the next record.
   *
   * @param nanos since 1970; 0 if the line has no time
   * @param isTime whether that was a number
   * @param message the node of a string
   * @param metadata the node of an object with structured metadata; 0 if there is none
   * @returns 0, or why the request is rejected
   */
  static takeLine(nanos: u64, isTime: bool, message: i32, metadata: i32): i32 {
    if (metadata !== 0 && countNames(metadata) > NAMES_MAX)
      return Records.reject(codes.TOO_MANY_NAMES, METADATA)
    if (!isTime || nanos >= END_NS) return Records.reject(codes.INVALID_TIMESTAMP, UNIX_NANO)
    Stream.line += 1
    memory.copy(ofLine, ofLabels, ROLES * 4)
    Stream.isShared = false
    Stream.loneRenamed = 0
    if (metadata !== 0) noteMetadata(metadata)
    Stream.level = firstOf(LEVEL_ROLES, SERVICE_ROLES)
    Stream.service = firstOf(SERVICE_ROLES, ENVIRONMENT_ROLES)
    Stream.environment = firstOf(ENVIRONMENT_ROLES, TIME_UNIX_NANO)

    Draft.clear()
    Draft.hasTime = nanos !== 0
    Draft.timeUs = nanos / 1_000
    Draft.set(columns.message, message)
    if (Stream.service !== 0) Draft.set(columns.service, Node.of(Stream.service).next)
    let reading = 0
    if (Stream.level !== 0) {
      Decoded.read(Node.of(Node.of(Stream.level).next))
      reading = readLevelText(PINO, Decoded.start, Decoded.end)
    }
    Draft.set(columns.level, levelNode(reading === 0 ? LOG : levelOf(reading)))
    if (Stream.environment !== 0) {
      Decoded.read(Node.of(Node.of(Stream.environment).next))
      Draft.set(columns.environment, findEnvironment(Decoded.start, Decoded.end))
    }
    Stream.writeMetadata(metadata, nanos, isExact(reading))
    return Records.take(Stream.findLone(message, metadata))
  }

  private static writeMetadata(metadata: i32, nanos: u64, isExact: bool): void {
    Metadata.begin()
    if (metadata !== 0) {
      const end = Node.of(metadata).next
      for (let name = metadata + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next)
        if (!Node.of(name).has(REPEATED) && !Stream.isColumn(name)) Metadata.addMember(name)
    }
    Stream.writeLabels()
    if (Stream.isShared) Stream.writeRenamed(metadata)
    if (nanos % 1_000 !== 0) Stream.addOwn(metadata, TIME_UNIX_NANO, addDigits(nanos))
    if (Stream.level !== 0 && !isExact) Stream.addOwn(metadata, ORIGINAL_LEVEL, Node.of(Stream.level).next)
    Metadata.finish()
  }

  private static isColumn(name: i32): bool {
    return name === Stream.level || name === Stream.service || name === Stream.environment
  }

  /** Copies what was written once, without the labels that the line does not have under their own names. */
  private static writeLabels(): void {
    let from = LABEL_TEXT
    let end = LABEL_TEXT
    for (let at = LABELS; at < Stream.labelsEnd; at += LABEL_BYTES) {
      const label = changetype<Label>(at)
      const isLeftOut = label.leftOutOf === Stream.line || Stream.isColumn(label.name)
      if (isLeftOut) {
        if (end > from) Metadata.addWritten(from, end)
        from = label.end
      } else Metadata.names += 1
      end = label.end
    }
    if (end > from) Metadata.addWritten(from, end)
    Metadata.levels = max(Metadata.levels, Stream.levels)
  }

  /** Adds the labels whose name another value in the structured metadata has. */
  private static writeRenamed(metadata: i32): void {
    const end = Node.of(metadata).next
    for (let name = metadata + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next) {
      if (Node.of(name).has(REPEATED)) continue
      const label = labelOf(Node.of(name))
      if (label === 0) continue
      const value = Node.of(changetype<Label>(label).name).next
      if (isSameValue(Node.of(value), Node.of(Node.of(name).next))) continue
      const renamed = Stream.freeName(metadata, Node.of(name), value)
      Metadata.addMember(renamed)
      if (Stream.loneRenamed === 0 && (Node.of(renamed).has(LONE) || Node.of(value).has(LONE)))
        Stream.loneRenamed = renamed
    }
  }

  /** Adds a member of the mapping, under a name that neither a label nor structured metadata has. */
  private static addOwn(metadata: i32, role: i32, value: i32): void {
    const name = load<i32>(ownNames + (role << 2))
    Node.of(name).next = value
    Metadata.addMember(
      load<i32>(ofLine + (role << 2)) === 0 ? name : Stream.freeName(metadata, Node.of(name), value),
    )
  }

  /** A name with the first number that makes it a new one. */
  private static freeName(metadata: i32, base: Node, value: i32): i32 {
    if (metadata !== 0 && !Stream.isIndexed) index(metadata)
    Stream.isIndexed = true
    const known = labels().slotOf(base)
    // A name that is only reserved keeps its numbers for the next line.
    if (!labels().isUsed(known)) labels().put(known, changetype<i32>(base))
    let free = known.free
    let before = 0
    while (true) {
      if (free === 0) {
        free = Stream.nextFree(base, before === 0 ? FIRST_NUMBER : FreeNumber.of(before).number + 1)
        if (before === 0) known.free = free
        else FreeNumber.of(before).next = free
      }
      const address = numberedName(base, FreeNumber.of(free).number)
      if (!ofThisLine().has(Node.of(address))) {
        keepNumbered(value)
        ofThisLine().add(address)
        return address
      }
      before = free
      free = FreeNumber.of(free).next
    }
  }

  private static nextFree(base: Node, number: i32): i32 {
    while (labelOf(Node.of(numberedName(base, number))) !== 0) number += 1
    const address = Stream.freeEnd
    const free = FreeNumber.of(address)
    free.number = number
    free.next = 0
    Stream.freeEnd += FREE_NUMBER_BYTES
    return address
  }

  /** Finds half of a surrogate pair in what is stored of the line. */
  private static findLone(message: i32, metadata: i32): bool {
    const service = Stream.service === 0 ? 0 : Node.of(Stream.service).next
    const isInMessage = Node.of(message).has(LONE)
    const isInService = service !== 0 && Node.of(service).has(LONE)
    const isInMetadata = metadata !== 0 && Node.of(metadata).has(LONE)
    if (!isInMessage && !isInService && !isInMetadata && !Stream.isLone) return false
    Path.begin()
    if (isInMessage || isInService) {
      Path.addText(isInMessage ? '/message' : '/service')
      return true
    }
    Path.addMetadata()
    if (isInMetadata && Path.findInObject(metadata)) return true
    for (let at = LABELS; at < Stream.labelsEnd; at += LABEL_BYTES) {
      const label = changetype<Label>(at)
      if (label.leftOutOf !== Stream.line && Path.findInMember(label.name)) return true
    }
    return Stream.loneRenamed !== 0 && Path.findInMember(Stream.loneRenamed)
  }
}

function labels(): NameTable {
  return NameTable.at(LABEL_TABLE)
}

function ofThisLine(): NameTable {
  return NameTable.at(LINE_TABLE)
}

/** The label with a name; 0 if there is none. */
function labelOf(name: Node): i32 {
  const slot = labels().slotOf(name)
  return labels().isUsed(slot) ? slot.label : 0
}

function index(metadata: i32): void {
  const end = Node.of(metadata).next
  for (let name = metadata + NODE_BYTES; name < end; name = Node.of(name + NODE_BYTES).next)
    if (!Node.of(name).has(REPEATED)) ofThisLine().add(name)
}

/** Adds a node for a name that the mapping adds. */
function addOwnName(role: i32): void {
  const start = Names.mark
  const end = writeRole(start, role)
  Names.keep(end)
  store<i32>(ownNames + (role << 2), Tape.end)
  Tape.add(NAME | ESCAPED | hashOf(start, end), start, end)
}

/** Keeps the name of a member in its role, if it has one. */
function note(roles: i32, name: i32): void {
  const role = roleOf(Node.of(name))
  if (role >= 0) store<i32>(roles + (role << 2), isUsable(role, Node.of(Node.of(name).next)) ? name : 0)
}

/** Structured metadata replaces labels with the same names. */
function noteMetadata(metadata: i32): void {
  const end = Node.of(metadata).next
  for (let address = metadata + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    if (name.has(REPEATED)) continue
    note(ofLine, address)
    const label = labelOf(name)
    if (label === 0) continue
    changetype<Label>(label).leftOutOf = Stream.line
    Stream.isShared = true
  }
}

/** The first name of some roles that a usable value has; 0 if there is none. */
function firstOf(role: i32, end: i32): i32 {
  for (; role < end; role += 1) {
    const name = load<i32>(ofLine + (role << 2))
    if (name !== 0) return name
  }
  return 0
}

function addDigits(nanos: u64): i32 {
  const address = Tape.end
  const start = Names.mark
  Names.keep(writeInteger(start, nanos))
  Tape.add(TEXT, start, Names.end)
  return address
}

/** Whether a label and structured metadata have the same value. Some clients send their labels once more with each line. */
function isSameValue(a: Node, b: Node): bool {
  if (a.isContainer || b.isContainer || a.isString !== b.isString) return false
  if (!a.isString || !(a.has(ESCAPED) || b.has(ESCAPED)))
    return a.kind === b.kind && isSameText(a.start, a.end, b.start, b.end)
  Decoded.read(a)
  const start = Decoded.start
  const end = Decoded.end
  Decoded.read(b)
  return isSameText(start, end, Decoded.start, Decoded.end)
}

function isSameText(a: i32, aEnd: i32, b: i32, bEnd: i32): bool {
  return aEnd - a === bEnd - b && isEqual(a, b, aEnd - a)
}

/** Rejects a line whose stream has no valid labels. */
export function rejectForLabels(): i32 {
  Metadata.begin()
  return Records.reject(codes.WRONG_TYPE, AT_LABELS)
}
