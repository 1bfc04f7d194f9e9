import { BACKSLASH, LOWER_N, NEWLINE } from '../bytes'
import * as columns from '../columns'
import { Decoded } from '../draft'
import { fieldOf } from '../fields'
import { USES } from '../memory'
import { Names } from '../names'
import { hasAtMostCharacters } from '../records'
import { decode, ESCAPED } from '../strings'
import { ARRAY, CLEAN, Node, NODE_BYTES, NUMBER, OBJECT, REPEATED, STRING, Tape, TEXT } from '../tape'
import { environmentNode, levelNode, USED } from './constants'
import {
  EXACT,
  isExact,
  levelOf,
  readLevelLetter,
  readLevelName,
  readLevelNumber,
  readLevelText,
} from './levels'
import { isNamed, memberOf, Members, Texts } from './members'
import { Digits } from './numbers'
import * as roles from './roles'
import { Time } from './times'
import { findEnvironment, Name, NO_ROLE, OTHER_CASE_RANK, Word } from './words'

// The fields that values of a record become. Those of roles have the numbers of their first roles.
export const TIME: i32 = 0
export const LEVEL: i32 = 1
export const MESSAGE: i32 = 2
export const SERVICE: i32 = 3
export const ENVIRONMENT: i32 = 4
export const SOURCE: i32 = 5
export const URL: i32 = 6
export const PATHNAME: i32 = 7
export const STACK: i32 = 8
export const METADATA: i32 = 9
export const FIELDS: i32 = 10

/** A value of the record that becomes a field of the entry. */
@unmanaged
export class Use {
  /** The node of the name in the record; 0 if no value was found. */
  name!: i32
  /** The node of the name within the object under `name`; 0 if the value is not in one. */
  child!: i32
  rank!: i32
  /** The node of the field. */
  node!: i32

  static of(field: i32): Use {
    return changetype<Use>(USES + (field << 4))
  }

  get isFound(): bool {
    return this.name !== 0
  }

  /** The node of the value in the record. */
  get value(): i32 {
    return Node.of(this.child === 0 ? this.name : this.child).next
  }
}

/** The address of the role's field. */
function fieldOfRole(role: i32): i32 {
  if (role === roles.TIME) return TIME
  if (role < roles.MESSAGE) return LEVEL
  if (role === roles.MESSAGE) return MESSAGE
  return role === roles.SERVICE ? SERVICE : role - 4
}

/** Stands for an answer that is not known yet. */
const UNKNOWN: i32 = -1

/** The best usable value for each field of an entry. */
export class Uses {
  /** The level, if one was found, and whether it says all that the record says. */
  static level: i32 = 0
  static isExact: bool = false
  private static isGelf: i32 = UNKNOWN
  private static isBunyan: i32 = UNKNOWN
  /** The field that was read last. */
  private static node: i32 = 0

  static find(record: Members): void {
    memory.fill(USES, 0, FIELDS << 4)
    Uses.isGelf = UNKNOWN
    Uses.isBunyan = UNKNOWN
    const last = record.last
    for (let at = record.first; at < last; at += 4) {
      const name = Node.of(load<i32>(at))
      const found = Name.find(name)
      if (found === 0) continue
      const word = Word.of(found)
      const isOtherCase = Name.isOtherCase
      if (word.value !== NO_ROLE) Uses.offer(record, word, isOtherCase, name, 0, name.next)
      if (word.isParent && Node.of(name.next).kind === OBJECT) Uses.findIn(record, word, isOtherCase, name)
    }
    if (!Use.of(LEVEL).isFound) Uses.findLevelOfMongo(record)
    Uses.markAll()
  }

  private static findIn(record: Members, parent: Word, isOtherCase: bool, name: Node): void {
    const object = Node.of(name.next)
    const end = object.next
    for (let address = name.next + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
      const child = Node.of(address)
      if (child.has(REPEATED)) continue
      const found = Name.findChild(parent, isOtherCase, child)
      if (found !== 0 && Word.of(found).value !== NO_ROLE)
        Uses.offer(record, Word.of(found), Name.isOtherCase, name, address, child.next)
    }
  }

  /** Takes the value if none of a smaller or the same rank was found, and if it is usable. */
  private static offer(
    record: Members,
    word: Word,
    isOtherCase: bool,
    name: Node,
    child: i32,
    value: i32,
  ): void {
    const role = word.value
    const use = Use.of(fieldOfRole(role))
    const rank = word.rank + (isOtherCase ? OTHER_CASE_RANK : 0)
    if (use.isFound && use.rank <= rank) return
    if (!Uses.read(record, role, child === 0 ? name : Node.of(child), value)) return
    use.rank = rank
    use.name = changetype<i32>(name)
    use.child = child
    use.node = Uses.node
  }

  private static read(record: Members, role: i32, name: Node, value: i32): bool {
    const node = Node.of(value)
    Uses.node = value
    switch (role) {
      case roles.TIME:
        return Time.read(node)
      case roles.LEVEL:
        return Uses.readLevel(node, Uses.isSyslogNumber(record, name) ? roles.SYSLOG : roles.PINO)
      case roles.LEVEL_SYSLOG:
        return Uses.readLevel(node, roles.SYSLOG)
      case roles.LEVEL_OTEL:
        return Uses.readLevel(node, roles.OTEL)
      case roles.LEVEL_PYTHON:
        return Uses.readLevel(node, roles.PYTHON)
      case roles.MESSAGE:
        return Uses.readMessage(node, name)
      case roles.SERVICE:
        return isShort(node, columns.service)
      case roles.SERVICE_OF_BUNYAN:
        return isShort(node, columns.service) && Uses.isBunyanRecord(record)
      case roles.ENVIRONMENT:
        return Uses.readEnvironment(node)
      case roles.SOURCE:
        return isSource(node)
      case roles.URL:
        return isShort(node, columns.url)
      case roles.PATHNAME:
        return isShort(node, columns.pathname)
      case roles.STACK:
        return Uses.readStack(node, name)
      default:
        return node.kind === OBJECT
    }
  }

  /** GELF has the severity of syslog as `level`. A number under `severity` is syslog's too (RFC 5424). */
  private static isSyslogNumber(record: Members, name: Node): bool {
    if (isNamed(name, 'severity')) return true
    if (!isNamed(name, 'level')) return false
    if (Uses.isGelf === UNKNOWN) Uses.isGelf = record.valueOf('short_message') === 0 ? 0 : 1
    return Uses.isGelf !== 0
  }

  /** Elsewhere `name` is the name of a logger or of a thing. */
  private static isBunyanRecord(record: Members): bool {
    if (Uses.isBunyan === UNKNOWN) {
      const level = record.valueOf('level')
      const isBunyan =
        level !== 0 &&
        Node.of(level).kind === NUMBER &&
        record.valueOf('pid') !== 0 &&
        record.valueOf('hostname') !== 0
      Uses.isBunyan = isBunyan ? 1 : 0
    }
    return Uses.isBunyan !== 0
  }

  private static readLevel(value: Node, numbering: i32): bool {
    const kind = value.kind
    if (kind === NUMBER)
      return Uses.takeLevel(readLevelNumber(numbering, Digits.small(value.start, value.end)))
    // Loguru: `{"name": "ERROR", "no": 40}`. The object is kept as the original level.
    const address = kind === OBJECT ? memberOf(changetype<i32>(value), 'name') : changetype<i32>(value)
    if (address === 0) return false
    const string = Node.of(address)
    if (!string.isString) return false
    const mark = Names.mark
    Decoded.read(string)
    const isInObject = kind === OBJECT
    const reading = isInObject
      ? readLevelName(Decoded.start, Decoded.end) & ~EXACT
      : readLevelText(numbering, Decoded.start, Decoded.end)
    Names.rewind(mark)
    return Uses.takeLevel(reading)
  }

  /** @param reading as from `readLevelText` @returns whether it is a level */
  private static takeLevel(reading: i32): bool {
    if (reading === 0) return false
    Uses.level = levelOf(reading)
    Uses.isExact = isExact(reading)
    Uses.node = levelNode(Uses.level)
    return true
  }

  /** The severities of MongoDB: a letter, and a digit for the verbosity of debug messages. */
  private static findLevelOfMongo(record: Members): void {
    const time = record.valueOf('t')
    if (time === 0 || Node.of(time).kind !== OBJECT) return
    const date = memberOf(time, '$date')
    if (date === 0 || !(Node.of(date).isString || Node.of(date).kind === NUMBER)) return
    const last = record.last
    for (let at = record.first; at < last; at += 4) {
      const name = load<i32>(at)
      if (!isNamed(Node.of(name), 's')) continue
      const value = Node.of(Node.of(name).next)
      if (!value.isString || value.bytes === 0 || value.bytes > 2 || !hasAtMostCharacters(value, 2)) return
      const letter = load<u8>(value.start)
      const reading = readLevelLetter(letter)
      if (reading === 0) return
      const isFatal = letter === 0x46 && value.bytes === 1
      Uses.takeLevel(reading | (isFatal || letter === 0x44 ? 0 : EXACT))
      const use = Use.of(LEVEL)
      use.name = name
      use.node = Uses.node
      return
    }
  }

  /** Docker ends the string of `log` with the newline of the line. */
  private static readMessage(value: Node, name: Node): bool {
    if (!value.isString) return false
    if (!isNamed(name, 'log')) return true
    const length = newlineBytes(value)
    if (length === 0) return true
    Uses.node = Tape.end
    Tape.add(value.head, value.start, value.end - length)
    return true
  }

  private static readEnvironment(value: Node): bool {
    if (!value.isString) return false
    const mark = Names.mark
    Decoded.read(value)
    const word = findEnvironment(Decoded.start, Decoded.end)
    Names.rewind(mark)
    if (word !== 0) Uses.node = environmentNode(Word.of(word).value)
    return word !== 0
  }

  /** A stack trace as a string, or as an array of its lines. */
  private static readStack(value: Node, name: Node): bool {
    if (value.isString) return value.bytes > 0 || isNamed(name, 'stack')
    if (value.kind !== ARRAY) return false
    const end = value.next
    const first = changetype<i32>(value) + NODE_BYTES
    if (first >= end) return false
    for (let address = first; address < end; address = Node.of(address).next)
      if (Node.of(address).kind !== STRING) return false
    const start = Texts.end
    let to = start
    for (let address = first; address < end; address = Node.of(address).next) {
      if (address > first) {
        store<u8>(to, NEWLINE)
        to += 1
      }
      const line = Node.of(address)
      to = decode(line.start, line.end, to)
    }
    Texts.end = to
    Uses.node = Tape.end
    Tape.add(TEXT, start, to)
    return true
  }

  /** Marks the names whose values are used: they do not become metadata. */
  private static markAll(): void {
    for (let field = 0; field < FIELDS; field += 1) {
      const use = Use.of(field)
      if (use.isFound) Node.of(use.name).head |= USED
    }
  }

  /** Marks used values within objects. Called when the record is not needed as a whole any more. */
  static prune(): void {
    for (let field = 0; field < FIELDS; field += 1) {
      const use = Use.of(field)
      if (!use.isFound || use.child === 0) continue
      Node.of(use.child).head |= REPEATED
      Node.of(Node.of(use.name).next).head &= ~CLEAN
    }
  }

  /** Whether a value is used as a whole. @param name marked as used */
  static isWhole(name: i32): bool {
    for (let field = 0; field < FIELDS; field += 1)
      if (Use.of(field).name === name && Use.of(field).child === 0) return true
    return false
  }
}

function isShort(value: Node, column: i32): bool {
  return value.isString && hasAtMostCharacters(value, fieldOf(column).charactersMax)
}

function isSource(value: Node): bool {
  if (value.kind !== STRING) return false
  const mark = Names.mark
  Decoded.read(value)
  Names.rewind(mark)
  return fieldOf(columns.source).allows(Decoded.start)
}

/** `u000a`, as a little-endian number without its first and its last letter. */
const UNICODE_ZEROS: u32 = 0x30303075
const ESCAPE_BYTES: i32 = 6

/** The bytes of a newline at the end of a string: 0 if there is none. */
function newlineBytes(value: Node): i32 {
  const end = value.end
  const last = load<u8>(end - 1)
  if (value.kind === TEXT) return value.bytes > 0 && last === NEWLINE ? 1 : 0
  if (!value.has(ESCAPED)) return 0
  if (last === LOWER_N && isEscape(value.start, end - 2)) return 2
  const isUnicode =
    value.bytes >= ESCAPE_BYTES &&
    load<u32>(end - 5) === UNICODE_ZEROS &&
    (last | 0x20) === 0x61 &&
    isEscape(value.start, end - ESCAPE_BYTES)
  return isUnicode ? ESCAPE_BYTES : 0
}

/** Whether a backslash is at a place that is not escaped itself. */
function isEscape(start: i32, at: i32): bool {
  let backslashes = 0
  while (at >= start && load<u8>(at) === BACKSLASH) {
    backslashes += 1
    at -= 1
  }
  return (backslashes & 1) === 1
}
