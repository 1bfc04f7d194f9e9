import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, copy } from './bytes'
import { OPEN_BRACE, OPEN_BRACKET, QUOTE } from './bytes'
import { metadataBytesMax } from './limits'
import { METADATA } from './memory'
import { countNames } from './names'
import { base64Bytes, writeScalar } from './scalars'
import { ESCAPE_LETTERS, ESCAPED, ESCAPED_BYTES, hexDigit, stops, translate } from './strings'
import { BYTES, CLEAN, HEX, Node, NODE_BYTES, OBJECT, REPEATED, STRING, TEXT } from './tape'

/**
 * The metadata of a row: JSON without whitespace and without the values of repeated names, and otherwise as it was sent. It is in the body if
 * that is possible, or else at `METADATA`.
 */
export class Metadata {
  static start: i32 = METADATA
  static end: i32 = METADATA
  /** The objects and arrays that are open at its deepest place, its own object included. */
  static levels: i32 = 1
  /** The names of its own object. Not known of an object that is used as it is. */
  static names: i32 = 0

  static get bytes(): i32 {
    return Metadata.end - Metadata.start
  }

  /** Nothing more is written then. */
  private static get isTooLarge(): bool {
    return Metadata.bytes > metadataBytesMax
  }

  /** Takes an object as it is in the body. It must be clean. */
  static use(object: Node): void {
    Metadata.start = object.start
    Metadata.end = object.end
    Metadata.levels = object.levels
  }

  /** Takes none: a record is rejected. */
  static discard(): void {
    Metadata.start = METADATA
    Metadata.end = METADATA
  }

  static begin(): void {
    Metadata.beginAt(METADATA)
  }

  static beginAt(start: i32): void {
    Metadata.start = start
    Metadata.end = start
    Metadata.levels = 1
    Metadata.names = 0
    Metadata.byte(OPEN_BRACE)
  }

  /** Writes a value alone, for a string with its JSON. */
  static writeValue(address: i32, to: i32): void {
    Metadata.start = to
    Metadata.end = to
    Metadata.value(address)
  }

  static finish(): void {
    Metadata.close(CLOSE_BRACE)
  }

  /** Adds all members of an object. */
  static addMembers(object: i32): void {
    Metadata.levels = max(Metadata.levels, Node.of(object).levels)
    Metadata.names += countNames(object)
    Metadata.members(object)
  }

  /** Adds a member. @param address its name */
  static addMember(address: i32): void {
    Metadata.levels = max(Metadata.levels, 1 + Node.of(Node.of(address).next).levels)
    Metadata.names += 1
    Metadata.member(address)
  }

  /** Adds members that were written before, each with a comma after it. */
  static addWritten(from: i32, end: i32): void {
    Metadata.copy(from, end)
  }

  private static byte(byte: u8): void {
    store<u8>(Metadata.end, byte)
    Metadata.end += 1
  }

  /** Replaces a comma at the end. */
  private static close(byte: u8): void {
    if (load<u8>(Metadata.end - 1) === COMMA) Metadata.end -= 1
    Metadata.byte(byte)
  }

  private static copy(from: i32, end: i32): void {
    Metadata.end = copy(Metadata.end, from, end - from)
  }

  private static member(address: i32): void {
    if (Metadata.isTooLarge) return
    const name = Node.of(address)
    if (name.has(ESCAPED)) Metadata.string(name.start, name.end)
    else Metadata.copy(name.start - 1, name.end + 1)
    Metadata.byte(COLON)
    Metadata.value(name.next)
    Metadata.byte(COMMA)
  }

  private static members(object: i32): void {
    const end = Node.of(object).next
    for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next)
      if (!Node.of(address).has(REPEATED)) Metadata.member(address)
  }

  /** Writes a value, unless the metadata is too large already. */
  private static value(address: i32): void {
    if (Metadata.isTooLarge) return
    const node = Node.of(address)
    const kind = node.kind
    if (kind === TEXT) return Metadata.string(node.start, node.end)
    if (kind > TEXT) return Metadata.scalar(address)
    if (kind === STRING) return Metadata.copy(node.start - 1, node.end + 1)
    if (kind < STRING || node.has(CLEAN)) return Metadata.copy(node.start, node.end)
    if (kind === OBJECT) {
      Metadata.byte(OPEN_BRACE)
      Metadata.members(address)
      return Metadata.close(CLOSE_BRACE)
    }
    Metadata.byte(OPEN_BRACKET)
    const end = node.next
    for (let element = address + NODE_BYTES; element < end; element = Node.of(element).next) {
      Metadata.value(element)
      Metadata.byte(COMMA)
    }
    Metadata.close(CLOSE_BRACKET)
  }

  private static scalar(address: i32): void {
    const node = Node.of(address)
    const bytes = node.kind === BYTES ? base64Bytes(node.bytes) : node.kind === HEX ? node.bytes * 2 : 0
    if (bytes > metadataBytesMax) Metadata.end += bytes
    else Metadata.end = writeScalar(Metadata.end, address)
  }

  /** Writes UTF-8 as a string of JSON. One that makes the metadata too large is only counted. */
  private static string(from: i32, end: i32): void {
    if (end - from > metadataBytesMax) {
      Metadata.end += end - from
      return
    }
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
