import { clearBytes, isDigit, NEWLINE } from '../bytes'
import * as columns from '../columns'
import { Decoded, Draft } from '../draft'
import { fieldOf } from '../fields'
import { COLUMNS_MAX, USES } from '../memory'
import { literal } from '../literals'
import { Names } from '../names'
import { hasAtMostCharacters } from '../records'
import { decode, LONE } from '../strings'
import { ARRAY, CLEAN, Node, NODE_BYTES, NUMBER, OBJECT, REPEATED, Tape, TEXT, USED } from '../tape'
import { Timestamp } from '../timestamps'
import { isExact, levelOf, MONGO, PINO, readLevelNumber, readLevelText, SYSLOG, wholeNumber } from './levels'
import { memberOf, Members } from './members'
import { Time } from './times'
import { findEnvironment, levelNode, Name, Word } from './words'

// How values are read. `readers` of @sluice/records has the same order.
const TIME: u8 = 1
const LEVEL: u8 = 2
const TEXT_OF_ANY_LENGTH: u8 = 3
const LINE: u8 = 4
const STRING: u8 = 5
const ENVIRONMENT: u8 = 6
const STACK: u8 = 7

const NAME = literal('name')
const DATE = literal('$date')
const LETTER_BEFORE_A: i32 = 0x40
const NINE: u8 = 0x39

// The records that some names belong to. `conditions` of @sluice/records has the same order.
const OF_BUNYAN: u8 = 1
const OF_MONGO: u8 = 2

/** Added to the rank of a name in a wrapper. Others have smaller ranks. */
const WRAPPED: i32 = 0x200

/** A value of the record that becomes a column. */
@unmanaged
export class Use {
  /** The node of the name in the record; 0 if no value was found. */
  name!: i32
  /** The node of the name of the value: `name`, or one in the object under it. */
  inner!: i32
  rank!: i32
  /** The node of the column. */
  node!: i32

  static of(column: i32): Use {
    return changetype<Use>(USES + (column << 4))
  }

  get isFound(): bool {
    return this.name !== 0
  }

  /** The node of the value in the record. */
  get value(): i32 {
    return Node.of(this.inner).next
  }
}

// Names by which records of some programs are known.
const LEVEL_NAME = literal('level')
const PID = literal('pid')
const HOSTNAME = literal('hostname')
const T = literal('t')
const SHORT_MESSAGE = literal('short_message')
const V = literal('v')

/** The best usable value for each column. */
export class Uses {
  /** Whether the level, if one was found, says all that the record says. */
  static isExact: bool = false
  /** The node of the value that was read last. */
  private static node: i32 = 0

  static find(record: Members): void {
    clearBytes(USES, COLUMNS_MAX << 4)
    const last = record.last
    for (let at = record.first; at < last; at += 4) Uses.offer(record, load<i32>(at), load<i32>(at), 0, 0)
  }

  /**
   * Takes the value of a member if none of a smaller or the same rank was found, and if it is usable. Then those of the members in it.
   *
   * @param name the member of the record that it is, or is in
   * @param parent the word of the object whose name belongs to its own; 0 if there is none
   * @param added to its rank
   */
  private static offer(record: Members, name: i32, inner: i32, parent: i32, added: i32): void {
    const address = Name.find(parent, Node.of(inner))
    if (address === 0) return
    const word = Word.of(address)
    // If a record has `level` and `Level`, the first is taken.
    const more = added | <i32>Name.isOtherCase
    Uses.take(record, word, name, inner, <i32>word.rank * 2 + more)
    const value = Node.of(inner).next
    if (Node.of(value).kind !== OBJECT) return
    if (word.isParent) Uses.offerAll(record, name, value, address, more)
    if (word.isWrapper && added < WRAPPED) Uses.offerAll(record, name, value, 0, WRAPPED)
  }

  private static offerAll(record: Members, name: i32, object: i32, parent: i32, added: i32): void {
    for (let inner = object + NODE_BYTES; Node.of(object).next > inner; inner = Node.afterMember(inner))
      if (!Node.of(inner).has(REPEATED)) Uses.offer(record, name, inner, parent, added)
  }

  private static take(record: Members, word: Word, name: i32, inner: i32, rank: i32): void {
    const reader = word.reader
    if (reader === 0) return
    if (rank >= WRAPPED && (reader < STRING || reader > STACK || word.condition !== 0)) return
    const use = Use.of(word.column)
    if (use.isFound && use.rank <= rank) return
    const value = Node.of(inner).next
    Uses.node = value
    if (!Uses.isMet(word.condition, record) || !Uses.read(record, word, Node.of(value))) return
    use.rank = rank
    use.name = name
    use.inner = inner
    use.node = Uses.node
  }

  private static read(record: Members, word: Word, value: Node): bool {
    switch (word.reader) {
      case TIME:
        if (!Time.read(value)) return false
        Draft.timeUs = Timestamp.us
        return true
      case LEVEL:
        return Uses.readLevel(record, word.numbering, value)
      case TEXT_OF_ANY_LENGTH:
        return value.isString
      case LINE:
        return Uses.readLine(value)
      case STRING:
        return isAllowed(word.column, value)
      case ENVIRONMENT:
        return Uses.readEnvironment(value)
      case STACK:
        return value.isString || Uses.readLines(value)
      default:
        return value.kind === OBJECT
    }
  }

  private static readLevel(record: Members, numbering: i32, value: Node): bool {
    // Loguru: `{"name": "ERROR", "no": 40}`. The object is kept as the original level.
    const isObject = value.kind === OBJECT
    const address = isObject ? memberOf(changetype<i32>(value), NAME) : changetype<i32>(value)
    const named = Node.of(address)
    let reading = 0
    if (address !== 0 && named.isString) {
      Decoded.peek(named)
      const start = Decoded.start
      const bytes = Decoded.end - start
      const isLetter = bytes === 1 || (bytes === 2 && isDigit(load<u8>(start + 1)))
      // Only numbers have a numbering.
      if (numbering === PINO && load<u8>(start) <= NINE) numbering = Uses.numberingIn(record)
      if (numbering !== MONGO) reading = readLevelText(numbering, start, Decoded.end)
      else if (isLetter) reading = readLevelNumber(MONGO, <i32>load<u8>(start) - LETTER_BEFORE_A)
    } else if (value.kind === NUMBER && numbering !== MONGO) {
      const number = wholeNumber(value.start, value.end)
      if (numbering === PINO) numbering = Uses.numberingIn(record)
      if (number < 64) reading = readLevelNumber(numbering, <i32>number)
    }
    if (reading === 0) return false
    Uses.isExact = !isObject && isExact(reading)
    Uses.node = levelNode(levelOf(reading))
    return true
  }

  /** GELF has the severity of syslog as `level`. */
  private static numberingIn(record: Members): i32 {
    return record.valueOf(SHORT_MESSAGE) === 0 ? PINO : SYSLOG
  }

  /** Whether a record is one of those that a name belongs to. */
  private static isMet(condition: u8, record: Members): bool {
    if (condition === OF_BUNYAN) {
      if (record.valueOf(PID) === 0) return false
      if (record.valueOf(V) !== 0) return true
      const level = record.valueOf(LEVEL_NAME)
      return level !== 0 && Node.of(level).kind === NUMBER && record.valueOf(HOSTNAME) !== 0
    }
    if (condition !== OF_MONGO) return true
    const time = record.valueOf(T)
    return time !== 0 && Node.of(time).kind === OBJECT && memberOf(time, DATE) !== 0
  }

  /** Docker ends the string of `log` with the newline of the line. */
  private static readLine(value: Node): bool {
    if (!value.isString) return false
    const mark = Names.mark
    Decoded.read(value)
    const end = Decoded.end - 1
    const hasNewline = end >= Decoded.start && load<u8>(end) === NEWLINE
    if (!hasNewline) Names.rewind(mark)
    else Uses.node = addText(value, Decoded.start, end)
    return true
  }

  private static readEnvironment(value: Node): bool {
    if (!value.isString) return false
    Decoded.peek(value)
    Uses.node = findEnvironment(Decoded.start, Decoded.end)
    return Uses.node !== 0
  }

  /** A stack trace as an array of its lines. */
  private static readLines(value: Node): bool {
    const end = value.next
    const first = changetype<i32>(value) + NODE_BYTES
    if (value.kind !== ARRAY || first >= end) return false
    const start = Names.mark
    let to = start
    for (let address = first; address < end; address = Node.of(address).next) {
      const line = Node.of(address)
      if (!line.isString) return false
      to = decode(line.start, line.end, to)
      store<u8>(to, NEWLINE)
      to += 1
    }
    Names.keep(to - 1)
    Uses.node = addText(value, start, to - 1)
    return true
  }

  /** Marks what is used. Called when the record is not needed as a whole any more. */
  static mark(): void {
    for (let column = 0; column <= columns.metadata; column += 1) {
      const use = Use.of(column)
      if (!use.isFound) continue
      if (use.inner === use.name || !leaveOut(Node.of(use.name).next, use.inner))
        Node.of(use.name).head |= USED
    }
  }
}

/** Whether a value is a string that the contract allows in a column. */
function isAllowed(column: i32, value: Node): bool {
  if (!value.isString) return false
  const field = fieldOf(column)
  if (!field.hasChoices) return hasAtMostCharacters(value, field.charactersMax)
  Decoded.peek(value)
  return field.allows(Decoded.start, Decoded.end)
}

/** Leaves a name in an object out, and objects without other members. @returns whether the object has others. It is not stored as a whole then */
function leaveOut(object: i32, inner: i32): bool {
  const node = Node.of(object)
  node.head &= ~CLEAN
  let hasOthers = false
  for (let at = object + NODE_BYTES; at < node.next; at = Node.afterMember(at)) {
    const name = Node.of(at)
    if (name.has(REPEATED)) continue
    const isAround = inner > name.next && Node.of(name.next).next > inner
    if (at === inner || (isAround && !leaveOut(name.next, inner))) name.head |= REPEATED
    else hasOthers = true
  }
  return hasOthers
}

/** The node of a text that was made of a value. */
function addText(value: Node, start: i32, end: i32): i32 {
  Tape.add(TEXT | (value.head & LONE), start, end)
  return Tape.end - NODE_BYTES
}
