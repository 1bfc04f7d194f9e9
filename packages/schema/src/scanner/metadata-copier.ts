import { isInexact } from '../exact-json.ts'
import { limits } from '../limits.ts'
import {
  BACKSLASH,
  characterAt,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  DOT,
  HEX_DIGITS,
  isDigit,
  LOWER_E,
  LOWER_U,
  MINUS,
  OPEN_BRACE,
  OPEN_BRACKET,
  PLAIN,
  QUOTE,
  SHORT_ESCAPE,
  UNESCAPED,
  UPPER_E,
  writeCharacter,
  ZERO,
} from './bytes.ts'
import type { Cursor } from './cursor.ts'

/** Objects with more names are left to the parser: each name is compared with those before it. */
const NAMES_MAX = 32
/**
 * JSON.stringify writes a number of as many digits as it was written, if its fraction does not end in a zero: no two
 * decimals of as many digits are the same double, so that none has a shorter form.
 */
const DIGITS_MAX = 15
/** … and so is a fraction of 0 with as many: a smaller one gets an exponent. */
const FRACTION_OF_ZERO_DIGITS_MAX = 6

/** FNV-1a: names of one hash are taken for one name, and the body is left to the parser. */
const FNV_BASIS = 0x811c9dc5 | 0
const FNV_PRIME = 0x01000193

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')
const UNICODE_ESCAPE = Buffer.from('\\\\u00')

/**
 * Copies a JSON object as JSON.stringify writes what JSON.parse makes of it, with its backslashes doubled as TabSeparated
 * wants them. Its methods return false where they give up: at what is no JSON or beyond a limit, at exponents, at escaped
 * names, and at names that JavaScript would put in another order or keep once.
 */
export class MetadataCopier {
  readonly #cursor: Cursor
  readonly #memory: Buffer
  readonly #start: number
  #end: number
  /** Hashes of the names of the objects that are open, those of the innermost last. */
  readonly #names = new Int32Array(NAMES_MAX * limits.metadataDepthMax)
  #namesEnd = 0

  /** @param start where in the cursor's memory the copy goes; at most twice the bytes of the text: see `row-scanner.ts` */
  constructor(cursor: Cursor, start: number) {
    this.#cursor = cursor
    this.#memory = cursor.memory
    this.#start = start
    this.#end = start
  }

  /** Where the copy ends. */
  get end(): number {
    return this.#end
  }

  /** An empty object takes the place of the last copy. */
  clear(): void {
    this.#memory[this.#start] = OPEN_BRACE
    this.#memory[this.#start + 1] = CLOSE_BRACE
    this.#end = this.#start + 2
  }

  /** Copies the object that the cursor is at, and leaves the cursor behind it. */
  copy(): boolean {
    this.#end = this.#start
    this.#namesEnd = 0
    return this.#copyObject(1) && this.#end - this.#start <= limits.metadataBytesMax
  }

  #copyObject(level: number): boolean {
    if (level > limits.metadataDepthMax) return false
    const names = this.#namesEnd
    this.#write(OPEN_BRACE)
    let byte = this.#cursor.skip()
    if (byte === CLOSE_BRACE) return this.#close(byte)
    for (;;) {
      if (byte !== QUOTE || !this.#copyName(names) || this.#cursor.next() !== COLON) return false
      this.#write(COLON)
      this.#cursor.skip()
      if (!this.#copyValue(level)) return false
      byte = this.#cursor.next()
      if (byte === CLOSE_BRACE) break
      if (byte !== COMMA) return false
      this.#write(COMMA)
      byte = this.#cursor.skip()
    }
    this.#namesEnd = names
    return this.#close(byte)
  }

  #copyArray(level: number): boolean {
    if (level > limits.metadataDepthMax) return false
    this.#write(OPEN_BRACKET)
    let byte = this.#cursor.skip()
    if (byte === CLOSE_BRACKET) return this.#close(byte)
    for (;;) {
      if (!this.#copyValue(level)) return false
      byte = this.#cursor.next()
      if (byte === CLOSE_BRACKET) return this.#close(byte)
      if (byte !== COMMA) return false
      this.#write(COMMA)
      this.#cursor.skip()
    }
  }

  #close(byte: number): true {
    this.#write(byte)
    this.#cursor.at += 1
    return true
  }

  #copyName(namesStart: number): boolean {
    const memory = this.#memory
    let { at } = this.#cursor
    let end = this.#end
    memory[end++] = QUOTE
    let byte = memory[++at] ?? 0
    // JavaScript puts names that are numbers before all others.
    if (isDigit(byte)) return false
    let hash = FNV_BASIS
    while (PLAIN[byte] === 1) {
      memory[end++] = byte
      hash = Math.imul(hash ^ byte, FNV_PRIME)
      byte = memory[++at] ?? 0
    }
    if (byte !== QUOTE) return false
    memory[end++] = QUOTE
    this.#end = end
    this.#cursor.at = at + 1
    return this.#isNewName(hash, namesStart)
  }

  #isNewName(hash: number, namesStart: number): boolean {
    const names = this.#names
    const namesEnd = this.#namesEnd
    if (namesEnd - namesStart === NAMES_MAX) return false
    for (let i = namesStart; i < namesEnd; i += 1) if (names[i] === hash) return false
    names[namesEnd] = hash
    this.#namesEnd = namesEnd + 1
    return true
  }

  #copyValue(level: number): boolean {
    const byte = this.#memory[this.#cursor.at]
    if (byte === QUOTE) return this.#copyString()
    if (byte === OPEN_BRACE) return this.#copyObject(level + 1)
    if (byte === OPEN_BRACKET) return this.#copyArray(level + 1)
    if (byte === MINUS || isDigit(byte)) return this.#copyNumber()
    return this.#copyWord(TRUE) || this.#copyWord(FALSE) || this.#copyWord(NULL)
  }

  #copyWord(word: Uint8Array): boolean {
    if (!this.#cursor.has(word, this.#cursor.at)) return false
    this.#memory.set(word, this.#end)
    this.#end += word.length
    this.#cursor.at += word.length
    return true
  }

  #copyString(): boolean {
    const memory = this.#memory
    let { at } = this.#cursor
    let end = this.#end
    memory[end++] = QUOTE
    let byte = memory[++at] ?? 0
    for (;;) {
      while (PLAIN[byte] === 1) {
        memory[end++] = byte
        byte = memory[++at] ?? 0
      }
      if (byte === QUOTE) break
      if (byte !== BACKSLASH) return false
      const escape = memory[++at] ?? 0
      const character = escape === LOWER_U ? characterAt(memory, at + 1) : UNESCAPED[escape] || -1
      if (character === -1) return false
      end = this.#writeEscaped(character, end)
      at += escape === LOWER_U ? 5 : 1
      byte = memory[at] ?? 0
    }
    memory[end++] = QUOTE
    this.#end = end
    this.#cursor.at = at + 1
    return true
  }

  /** Writes a character that was escaped, as JSON.stringify escapes it, if it does. @returns where it ends */
  #writeEscaped(character: number, at: number): number {
    const memory = this.#memory
    const short = SHORT_ESCAPE[character] ?? 0
    if (short !== 0) {
      memory[at] = BACKSLASH
      memory[at + 1] = BACKSLASH
      memory[at + 2] = short
      if (short !== BACKSLASH) return at + 3
      memory[at + 3] = BACKSLASH
      return at + 4
    }
    if (character >= 0x20) return writeCharacter(memory, at, character)
    memory.set(UNICODE_ESCAPE, at)
    const digits = at + UNICODE_ESCAPE.length
    memory[digits] = HEX_DIGITS[character >> 4] ?? 0
    memory[digits + 1] = HEX_DIGITS[character & 15] ?? 0
    return digits + 2
  }

  #copyNumber(): boolean {
    const memory = this.#memory
    const start = this.#cursor.at
    const whole = memory[start] === MINUS ? start + 1 : start
    const isZero = memory[whole] === ZERO
    let at = whole
    while (isDigit(memory[at])) at += 1
    let digits = at - whole
    if (digits === 0 || (isZero && digits > 1)) return false
    let isAsStringified = digits <= DIGITS_MAX && !(isZero && whole > start)
    if (memory[at] === DOT) {
      const fraction = at + 1
      at = fraction
      while (isDigit(memory[at])) at += 1
      if (at === fraction) return false
      digits += at - fraction
      isAsStringified =
        memory[at - 1] !== ZERO &&
        (isZero ? at - fraction <= FRACTION_OF_ZERO_DIGITS_MAX : digits <= DIGITS_MAX)
    }
    if (memory[at] === LOWER_E || memory[at] === UPPER_E) return false
    this.#cursor.at = at
    if (!isAsStringified) return this.#writeNumber(Number(memory.toString('latin1', start, at)))
    let end = this.#end
    for (let i = start; i < at; i += 1) memory[end++] = memory[i] ?? 0
    this.#end = end
    return true
  }

  #writeNumber(number: number): boolean {
    if (isInexact(number)) return false
    this.#end += this.#memory.write(JSON.stringify(number), this.#end, 'latin1')
    return true
  }

  #write(byte: number): void {
    this.#memory[this.#end] = byte
    this.#end += 1
  }
}
