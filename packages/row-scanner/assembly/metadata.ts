import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, copy } from './bytes'
import { OPEN_BRACE, OPEN_BRACKET, QUOTE } from './bytes'
import * as codes from './codes'
import { metadataBytesMax, metadataDepthMax, metadataNamesMax } from './limits'
import { Literal, literal, literals } from './literals'
import { LITERAL_BYTES, METADATA, SLACK } from './memory'
import { decode, ESCAPE_LETTERS, ESCAPED, ESCAPED_BYTES, hexDigit, LONE, stops, translate } from './strings'
import { ARRAY, CLEAN, Node, NODE_BYTES, OBJECT, REPEATED, STRING, TEXT, USED } from './tape'

/** Says in the metadata of a record how it was repaired. A client's member with this name is not kept then. */
const MARK: i32 = literal('sluiceRepaired')
/** The codes of what can be repaired, in their order. */
const FIRST_WORD: i32 = literals(
  'invalid_timestamp invalid_unicode missing not_allowed too_deep too_large too_long too_many_names',
)
/** The shortest member, `"":0`, and the shortest element. */
const MEMBER_BYTES: i32 = 4
const ELEMENT_BYTES: i32 = 1
/** When a member or an element has gone because it is too large, no other one is tried for as little room. */
const FULL_BYTES: i32 = 64
/** No message is longer: 65,536 characters. */
const TEXT_BYTES_MAX: i32 = 262_144
/** The mark with all codes. */
export const MARK_BYTES: i32 = 128
/** With as much room besides the mark, nothing has gone that would have had room without it. */
const ROOM_BYTES: i32 = MARK_BYTES + FULL_BYTES + 32

/**
 * The metadata of a row: JSON without whitespace and without the values of repeated names, and otherwise as it was sent. It is in the body if
 * that is possible, or else at `METADATA`. What is above a limit is left out: the first members that fit stay.
 */
export class Metadata {
  static start: i32 = METADATA
  static end: i32 = METADATA
  /** What is not as it was sent: a bit for each code. A strict entry is rejected for it, a record is repaired. */
  static faults: i32 = 0
  private static limit: i32 = 0
  private static names: i32 = 0
  private static namesMax: i32 = 0
  /** Whether there is room for the mark. */
  private static isMarked: bool = false
  /** Whether it becomes a message, which is cut later. */
  private static isText: bool = false
  /** Whether a member has the name of the mark. */
  private static isNamed: bool = false
  /** The objects and arrays that are open. */
  private static level: i32 = 0
  /** Members that follow one another in the body and are copied at once: where they are there, and where they begin here. 0 for none. */
  private static run: i32 = 0
  private static runStart: i32 = 0

  static get bytes(): i32 {
    return Metadata.end - Metadata.start
  }

  static note(code: i32): void {
    Metadata.faults |= 1 << code
  }

  static has(code: i32): bool {
    return (Metadata.faults & (1 << code)) !== 0
  }

  /** Takes an object as it is in the body. It must be clean. */
  static use(object: Node): void {
    Metadata.start = object.start
    Metadata.end = object.end
    if (object.levels > metadataDepthMax) Metadata.note(codes.TOO_DEEP)
    if (object.bytes > metadataBytesMax) Metadata.note(codes.TOO_LARGE)
  }

  static begin(): void {
    Metadata.beginAt(METADATA, metadataNamesMax)
  }

  /** Begins metadata with room for a mark. */
  static beginMarked(): void {
    Metadata.beginAt(METADATA, metadataNamesMax - 1)
    Metadata.reserve(MARK_BYTES)
    Metadata.isMarked = true
  }

  static beginAt(start: i32, namesMax: i32): void {
    Metadata.beginValue(start, namesMax === i32.MAX_VALUE)
    Metadata.names = 0
    Metadata.namesMax = namesMax
    Metadata.isMarked = false
    Metadata.isNamed = false
    Metadata.level = 1
    Metadata.byte(OPEN_BRACE)
  }

  /** Keeps room for members that are added later. */
  static reserve(bytes: i32): void {
    Metadata.limit -= bytes
  }

  /** Writes a value alone. @param level of what is around it; 0 if it becomes a message */
  static writeValue(address: i32, to: i32, level: i32): void {
    Metadata.beginValue(to, level === 0)
    Metadata.level = level
    Metadata.value(address)
  }

  private static beginValue(start: i32, isText: bool): void {
    Metadata.isText = isText
    Metadata.start = start
    Metadata.end = start
    Metadata.limit = isText ? i32.MAX_VALUE : start + metadataBytesMax
    Metadata.run = 0
  }

  static finish(): void {
    Metadata.close(CLOSE_BRACE)
  }

  /** Whether a mark that turned out to be needed can be added to what was written. */
  static get canMark(): bool {
    const isShort = Metadata.names < Metadata.namesMax && Metadata.hasRoom(ROOM_BYTES)
    return Metadata.isMarked || (isShort && !Metadata.isNamed)
  }

  static mark(): void {
    Metadata.flush()
    const name = Literal.of(MARK)
    Metadata.copy(name.start - 1, name.end + 2)
    Metadata.byte(OPEN_BRACKET)
    for (let code = codes.INVALID_TIMESTAMP; code <= codes.TOO_MANY_NAMES; code += 1) {
      if (!Metadata.has(code)) continue
      const word = Literal.of(FIRST_WORD + (code - codes.INVALID_TIMESTAMP) * LITERAL_BYTES)
      Metadata.copy(word.start - 1, word.end + 1)
      Metadata.byte(COMMA)
    }
    Metadata.close(CLOSE_BRACKET)
  }

  /** Adds the members of an object that are not used. */
  static addMembers(object: i32, first: i32 = object + NODE_BYTES): void {
    for (let at = first; Node.of(object).next > at; at = Node.afterMember(at))
      if (!Node.of(at).has(REPEATED | USED) && !Metadata.addMember(at)) return
  }

  /** Adds a member. @param address its name @returns false if no other has room */
  static addMember(address: i32): bool {
    if (Literal.of(MARK).isName(Node.of(address))) {
      if (Metadata.isMarked) return true
      Metadata.isNamed = true
    }
    if (Metadata.isFull(MEMBER_BYTES) || (Metadata.isText && Metadata.bytes > TEXT_BYTES_MAX)) return false
    if (Metadata.names === Metadata.namesMax) {
      Metadata.note(codes.TOO_MANY_NAMES)
      return false
    }
    if (Metadata.member(address)) Metadata.names += 1
    return true
  }

  /** Adds members that were written before, each with a comma after it. */
  static addWritten(from: i32, end: i32): void {
    Metadata.flush()
    Metadata.copy(from, end)
  }

  private static byte(byte: u8): void {
    store<u8>(Metadata.end, byte)
    Metadata.end += 1
  }

  /** Replaces a comma at the end. */
  private static close(byte: u8): void {
    Metadata.flush()
    if (load<u8>(Metadata.end - 1) === COMMA) Metadata.end -= 1
    Metadata.byte(byte)
  }

  private static copy(from: i32, end: i32): void {
    Metadata.end = copy(Metadata.end, from, end - from)
  }

  /** Whether there is room for bytes, and for the ends of what is open. */
  private static hasRoom(bytes: i32): bool {
    return Metadata.end + bytes + Metadata.level <= Metadata.limit
  }

  /** Whether there is no room for the shortest member or element, or little: nobody looks at the others then. */
  private static isFull(bytes: i32): bool {
    if (Metadata.hasRoom(Metadata.has(codes.TOO_LARGE) ? FULL_BYTES : bytes)) return false
    Metadata.note(codes.TOO_LARGE)
    return true
  }

  /** Copies the members of the run. */
  private static flush(): void {
    if (Metadata.run === 0) return
    const last = Metadata.end - 1
    copy(Metadata.runStart, Metadata.run, last - Metadata.runStart)
    store<u8>(last, COMMA)
    Metadata.run = 0
  }

  /** Whether a value is written as it is in the body. @param level of what is around it */
  @inline
  private static isPlain(value: Node, level: i32): bool {
    if (value.has(LONE)) return false
    return (
      value.kind <= STRING ||
      (value.kind <= ARRAY && value.has(CLEAN) && level + value.levels <= metadataDepthMax)
    )
  }

  /** Adds a member that is as it was sent to the run. @returns whether it is one, and has room */
  @inline
  private static extendRun(name: Node): bool {
    const value = Node.of(name.next)
    const quote = value.kind === STRING ? 1 : 0
    // Whitespace, and a value that was not after its name, are found by their places.
    if (value.start - quote !== name.end + 2 || name.has(ESCAPED) || !Metadata.isPlain(value, Metadata.level))
      return false
    const from = name.start - 1
    const bytes = value.end + quote - from
    if (!Metadata.hasRoom(bytes)) return false
    if (Metadata.run === 0 || from - Metadata.run !== Metadata.end - Metadata.runStart) {
      Metadata.flush()
      Metadata.run = from
      Metadata.runStart = Metadata.end
    }
    Metadata.end += bytes + 1
    return true
  }

  /** @returns whether it stays */
  private static member(address: i32): bool {
    const name = Node.of(address)
    if (Metadata.extendRun(name)) return true
    Metadata.flush()
    const before = Metadata.end
    if (name.has(LONE)) Metadata.note(codes.INVALID_UNICODE)
    let fault = codes.TOO_LARGE
    if (Metadata.hasRoom(name.bytes)) {
      if (name.has(ESCAPED)) Metadata.string(name.start, name.end)
      else Metadata.copy(name.start - 1, name.end + 1)
      Metadata.byte(COLON)
      fault = Metadata.value(name.next)
    }
    return Metadata.keep(before, fault)
  }

  /** Ends a member or an element, which goes if it has a fault or does not fit. */
  private static keep(before: i32, fault: i32): bool {
    if (fault === 0 && !Metadata.hasRoom(0)) fault = codes.TOO_LARGE
    if (fault === 0) {
      Metadata.byte(COMMA)
      return true
    }
    Metadata.note(fault)
    Metadata.end = before
    return false
  }

  private static members(object: i32): void {
    for (let at = object + NODE_BYTES; Node.of(object).next > at; at = Node.afterMember(at)) {
      if (Node.of(at).has(REPEATED)) continue
      if (Metadata.isFull(MEMBER_BYTES)) return
      Metadata.member(at)
    }
  }

  private static elements(array: i32): void {
    for (let at = array + NODE_BYTES; Node.of(array).next > at; at = Node.of(at).next) {
      if (Metadata.isFull(ELEMENT_BYTES)) return
      Metadata.keep(Metadata.end, Metadata.value(at))
    }
  }

  /** Writes a value. @returns 0, or why it must go, with its member: nothing of it is needed then */
  private static value(address: i32): i32 {
    const node = Node.of(address)
    const kind = node.kind
    if (kind === TEXT) return Metadata.string(node.start, node.end)
    if (kind === STRING && node.has(LONE)) {
      Metadata.note(codes.INVALID_UNICODE)
      // It gets shorter, but never by more than `\u0061` does. It is decoded behind its place.
      if (!Metadata.hasRoom(node.bytes / 6)) return codes.TOO_LARGE
      const decoded = Metadata.end + node.bytes + SLACK
      return Metadata.string(decoded, decode(node.start, node.end, decoded))
    }
    if (kind === STRING) return Metadata.raw(node.start - 1, node.end + 1)
    if (kind < STRING) return Metadata.raw(node.start, node.end)
    const isDeep = Metadata.level + node.levels > metadataDepthMax
    if (isDeep && !Metadata.isText) {
      Metadata.note(codes.TOO_DEEP)
      return Metadata.string(node.start, node.end)
    }
    if ((isDeep || Metadata.isPlain(node, Metadata.level)) && Metadata.hasRoom(node.bytes))
      return Metadata.raw(node.start, node.end)
    // A list of OTLP has no text that could stay.
    if (Metadata.level === metadataDepthMax) return codes.TOO_DEEP
    Metadata.byte(kind === OBJECT ? OPEN_BRACE : OPEN_BRACKET)
    Metadata.level += 1
    if (kind === OBJECT) Metadata.members(address)
    else Metadata.elements(address)
    Metadata.level -= 1
    Metadata.close(kind === OBJECT ? CLOSE_BRACE : CLOSE_BRACKET)
    return 0
  }

  private static raw(from: i32, end: i32): i32 {
    if (!Metadata.hasRoom(end - from)) return codes.TOO_LARGE
    Metadata.copy(from, end)
    return 0
  }

  /** Writes UTF-8 as a string of JSON. Escapes may make it longer than its room. */
  private static string(from: i32, end: i32): i32 {
    if (!Metadata.hasRoom(end - from)) return codes.TOO_LARGE
    Metadata.byte(QUOTE)
    let to = Metadata.end
    for (let at = from; at < end;) {
      const bits = stops(at)
      v128.store(to, v128.load(at))
      const plain = min(bits === 0 ? 16 : ctz(bits), end - at)
      at += plain
      to += plain
      // Nothing to escape, or it is after the string.
      if (plain === 16 || at === end) continue
      to = writeEscape(to, load<u8>(at))
      at += 1
    }
    Metadata.end = to
    Metadata.byte(QUOTE)
    return 0
  }
}

/** `\u00`, as one little-endian number. */
const UNICODE: u32 = 0x3030755c

function writeEscape(to: i32, byte: u8): i32 {
  const letter = translate(byte, ESCAPED_BYTES, ESCAPE_LETTERS)
  if (letter >= 0) {
    store<u8>(to, BACKSLASH)
    store<u8>(to + 1, <u8>letter)
    return to + 2
  }
  store<u32>(to, UNICODE)
  store<u8>(to + 4, hexDigit(byte >> 4))
  store<u8>(to + 5, hexDigit(byte & 15))
  return to + 6
}
