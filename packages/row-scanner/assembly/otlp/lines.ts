import { BACKSLASH, COMMA, copy, LOWER_U, MINUS, QUOTE, ZERO } from '../bytes'
import { BODY, DIGITS, OTLP_TEXTS } from '../memory'
import { hexDigit, shortEscape, stops } from '../strings'

/** The most digits of a number of 64 bits. */
const DIGITS_MAX: i32 = 20

/** The length of one of `texts`. */
export function bytesOf(text: i32): i32 {
  return load<u8>(OTLP_TEXTS + text)
}

/** The address of one of `texts`. */
export function startOf(text: i32): i32 {
  return OTLP_TEXTS + text + 1
}

/** Writes JSON. The caller has checked that there is room. */
export class Lines {
  /** The end of what was written. */
  static end: i32 = BODY

  static byte(byte: u8): void {
    store<u8>(Lines.end, byte)
    Lines.end += 1
  }

  /** Writes one of `texts`. */
  static text(text: i32): void {
    Lines.end = copy(Lines.end, startOf(text), bytesOf(text))
  }

  static copy(from: i32, bytes: i32): void {
    Lines.end = copy(Lines.end, from, bytes)
  }

  /** Replaces a comma at the end. */
  static close(byte: u8): void {
    if (load<u8>(Lines.end - 1) === COMMA) Lines.end -= 1
    Lines.byte(byte)
  }

  /** Writes a string. It is valid JSON if the bytes are UTF-8. */
  static string(from: i32, fromEnd: i32): void {
    let to = Lines.end
    store<u8>(to, QUOTE)
    to += 1
    for (let at = from; at < fromEnd;) {
      const bits = stops(at)
      v128.store(to, v128.load(at))
      const plain = min(bits === 0 ? 16 : ctz(bits), fromEnd - at)
      at += plain
      to += plain
      // Nothing to escape, or it is after the string.
      if (plain === 16 || at === fromEnd) continue
      to = writeEscape(to, load<u8>(at))
      at += 1
    }
    store<u8>(to, QUOTE)
    Lines.end = to + 1
  }

  static integer(value: i64): void {
    if (value < 0) Lines.byte(MINUS)
    Lines.digits(value < 0 ? -value : value)
  }

  static digits(value: u64): void {
    let at = DIGITS + DIGITS_MAX
    do {
      at -= 1
      store<u8>(at, <u8>(ZERO + <u8>(value % 10)))
      value /= 10
    } while (value !== 0)
    Lines.copy(at, DIGITS + DIGITS_MAX - at)
  }

  /** Writes a number with leading zeros. */
  static padded(value: i32, digits: i32): void {
    for (let i = digits - 1; i >= 0; i -= 1) {
      store<u8>(Lines.end + i, <u8>(ZERO + <u8>(value % 10)))
      value /= 10
    }
    Lines.end += digits
  }

  static hex(from: i32, fromEnd: i32): void {
    let to = Lines.end
    for (let at = from; at < fromEnd; at += 1) {
      const byte: i32 = load<u8>(at)
      store<u8>(to, hexDigit(byte >> 4))
      store<u8>(to + 1, hexDigit(byte & 15))
      to += 2
    }
    Lines.end = to
  }
}

function writeEscape(to: i32, byte: u8): i32 {
  store<u8>(to, BACKSLASH)
  const short = shortEscape(byte)
  if (short !== 0) {
    store<u8>(to + 1, short)
    return to + 2
  }
  store<u8>(to + 1, LOWER_U)
  store<u8>(to + 2, ZERO)
  store<u8>(to + 3, ZERO)
  store<u8>(to + 4, hexDigit(byte >> 4))
  store<u8>(to + 5, hexDigit(byte & 15))
  return to + 6
}
