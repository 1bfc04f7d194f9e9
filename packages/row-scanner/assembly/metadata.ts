import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  copy,
  DOT,
  FALS,
  isDigit,
  LOWER_E,
  MINUS,
  NULL,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  TRUE,
  UPPER_E,
  ZERO,
} from './bytes'
import { Cursor } from './cursor'
import { writeNumber } from './host'
import { metadataBytesMax, metadataDepthMax } from './limits'
import { METADATA, NAMES, NAMES_MAX } from './memory'
import { escapeBytes, escaped, hexDigit, shortEscape, stops, writeCharacter } from './strings'

/**
 * Up to this number of digits, JSON.stringify writes a number as it was written, unless its fraction ends in a zero. No two
 * decimals with this many digits are the same double, so none has a shorter form.
 */
const DIGITS_MAX: i32 = 15
/** The same for the fraction of a number below 1. With more digits it may be small enough to get an exponent. */
const FRACTION_OF_ZERO_DIGITS_MAX: i32 = 6

/** `u00` and a zero byte, as one number. */
const U00: u32 = 0x00303075

/** The factor is odd, and half of its bits are set. Two names with the same hash count as the same name: the parser gets the body. */
const HASH_FACTOR: u64 = 0x9e3779b97f4a7c15

/**
 * Copies a JSON object. The copy equals JSON.stringify(JSON.parse(object)), with its backslashes doubled for TabSeparated. The
 * functions return false to give up: for invalid JSON, above a limit, for exponents, for escaped names, and for names that
 * JavaScript would reorder or merge.
 */
export class Metadata {
  /** The end of the copy. */
  static end: i32 = METADATA
  private static namesEnd: i32 = NAMES

  /** Replaces the last copy by an empty object. */
  static clear(): void {
    store<u8>(METADATA, OPEN_BRACE)
    store<u8>(METADATA + 1, CLOSE_BRACE)
    Metadata.end = METADATA + 2
  }

  /** Copies the object at the cursor, and moves the cursor after it. */
  static copy(): bool {
    Metadata.end = METADATA
    Metadata.namesEnd = NAMES
    return Metadata.copyObject(1) && Metadata.end - METADATA <= metadataBytesMax
  }

  private static copyObject(level: i32): bool {
    if (level > metadataDepthMax) return false
    const names = Metadata.namesEnd
    Metadata.write(OPEN_BRACE)
    let byte = Cursor.skip()
    if (byte === CLOSE_BRACE) return Metadata.close(byte)
    while (true) {
      if (byte !== QUOTE || !Metadata.copyName(names) || Cursor.next() !== COLON) return false
      Metadata.write(COLON)
      if (!Metadata.copyValue(Cursor.skip(), level)) return false
      byte = Cursor.next()
      if (byte === CLOSE_BRACE) break
      if (byte !== COMMA) return false
      Metadata.write(COMMA)
      byte = Cursor.skip()
    }
    Metadata.namesEnd = names
    return Metadata.close(byte)
  }

  private static copyArray(level: i32): bool {
    if (level > metadataDepthMax) return false
    Metadata.write(OPEN_BRACKET)
    let byte = Cursor.skip()
    if (byte === CLOSE_BRACKET) return Metadata.close(byte)
    while (true) {
      if (!Metadata.copyValue(byte, level)) return false
      byte = Cursor.next()
      if (byte === CLOSE_BRACKET) return Metadata.close(byte)
      if (byte !== COMMA) return false
      Metadata.write(COMMA)
      byte = Cursor.skip()
    }
  }

  private static close(byte: u8): bool {
    Metadata.write(byte)
    Cursor.at += 1
    return true
  }

  /** Copies the name at the cursor, and moves the cursor after it. @param names the first hash of its object */
  private static copyName(names: i32): bool {
    let at = Cursor.at + 1
    // JavaScript moves names that are integers before all others.
    if (isDigit(load<u8>(at))) return false
    let end = Metadata.end
    store<u8>(end, QUOTE)
    end += 1
    let hash: u64 = 0
    while (true) {
      const bits = stops(at)
      v128.store(end, v128.load(at))
      const plain = bits === 0 ? 16 : ctz(bits)
      hash = hashed(hash, at, plain)
      at += plain
      end += plain
      if (bits !== 0) break
    }
    if (load<u8>(at) !== QUOTE) return false
    store<u8>(end, QUOTE)
    Metadata.end = end + 1
    Cursor.at = at + 1
    return Metadata.noteName(hash, names)
  }

  /** Records a name of the innermost object. @returns false if its hash is there already, or the object has too many names */
  private static noteName(hash: u64, names: i32): bool {
    const end = Metadata.namesEnd
    if (end - names === NAMES_MAX << 3) return false
    for (let at = names; at < end; at += 8) if (load<u64>(at) === hash) return false
    store<u64>(end, hash)
    Metadata.namesEnd = end + 8
    return true
  }

  private static copyValue(byte: u8, level: i32): bool {
    if (byte === QUOTE) return Metadata.copyString()
    if (byte === OPEN_BRACE) return Metadata.copyObject(level + 1)
    if (byte === OPEN_BRACKET) return Metadata.copyArray(level + 1)
    if (byte === MINUS || isDigit(byte)) return Metadata.copyNumber()
    return Metadata.copyWord()
  }

  private static copyWord(): bool {
    const at = Cursor.at
    const word = load<u32>(at)
    const isFalse = word === FALS && load<u8>(at + 4) === LOWER_E
    if (!isFalse && word !== TRUE && word !== NULL) return false
    const bytes = isFalse ? 5 : 4
    Metadata.end = copy(Metadata.end, at, bytes)
    Cursor.at = at + bytes
    return true
  }

  private static copyString(): bool {
    let at = Cursor.at + 1
    let end = Metadata.end
    store<u8>(end, QUOTE)
    end += 1
    while (true) {
      const bits = stops(at)
      v128.store(end, v128.load(at))
      if (bits === 0) {
        at += 16
        end += 16
        continue
      }
      at += ctz(bits)
      end += ctz(bits)
      const byte = load<u8>(at)
      if (byte === QUOTE) break
      if (byte !== BACKSLASH) return false
      const character = escaped(at + 1)
      if (character < 0) return false
      at += 1 + escapeBytes(at + 1)
      end = writeEscaped(end, character)
    }
    store<u8>(end, QUOTE)
    Metadata.end = end + 1
    Cursor.at = at + 1
    return true
  }

  private static copyNumber(): bool {
    const start = Cursor.at
    const whole = load<u8>(start) === MINUS ? start + 1 : start
    const isZero = load<u8>(whole) === ZERO
    let at = digitsEnd(whole)
    let digits = at - whole
    if (digits === 0 || (isZero && digits > 1)) return false
    let isAsStringified = digits <= DIGITS_MAX && !(isZero && whole > start)
    if (load<u8>(at) === DOT) {
      const fraction = at + 1
      at = digitsEnd(fraction)
      if (at === fraction) return false
      digits += at - fraction
      isAsStringified =
        load<u8>(at - 1) !== ZERO &&
        (isZero ? at - fraction <= FRACTION_OF_ZERO_DIGITS_MAX : digits <= DIGITS_MAX)
    }
    const byte = load<u8>(at)
    if (byte === LOWER_E || byte === UPPER_E) return false
    Cursor.at = at
    const end = Metadata.end
    Metadata.end = isAsStringified ? copy(end, start, at - start) : end + writeNumber(start, at, end)
    return Metadata.end !== end
  }

  private static write(byte: u8): void {
    store<u8>(Metadata.end, byte)
    Metadata.end += 1
  }
}

/** Writes an unescaped character as JSON.stringify writes it, escaped or not. @returns its end */
function writeEscaped(to: i32, character: i32): i32 {
  const short = shortEscape(character)
  if (short === 0 && character >= 0x20) return writeCharacter(to, character)
  store<u8>(to, BACKSLASH)
  store<u8>(to + 1, BACKSLASH)
  if (short === BACKSLASH) {
    store<u8>(to + 2, BACKSLASH)
    store<u8>(to + 3, BACKSLASH)
    return to + 4
  }
  if (short !== 0) {
    store<u8>(to + 2, short)
    return to + 3
  }
  store<u32>(to + 2, U00)
  store<u8>(to + 5, hexDigit(character >> 4))
  store<u8>(to + 6, hexDigit(character & 15))
  return to + 7
}

/** Mixes up to sixteen bytes of a name, and their number, into its hash. */
function hashed(hash: u64, at: i32, bytes: i32): u64 {
  let low = load<u64>(at)
  let high: u64 = 0
  if (bytes > 8) high = load<u64>(at + 8) & lowBytes(bytes - 8)
  else low &= lowBytes(bytes)
  hash = rotl(hash ^ low, 29) * HASH_FACTOR
  return rotl(hash ^ high ^ <u64>bytes, 31) * HASH_FACTOR
}

/** A mask of the lowest bytes. */
function lowBytes(bytes: i32): u64 {
  return bytes === 0 ? 0 : <u64>-1 >> ((8 - bytes) << 3)
}

function digitsEnd(at: i32): i32 {
  while (isDigit(load<u8>(at))) at += 1
  return at
}
