import { DOT, isEqual } from '../bytes'
import { SCRATCH, WORD_BYTES, WORD_LENGTHS, WORD_SLOTS, WORDS, WORDS_MAX } from '../memory'
import { hashOf } from '../names'
import { HASH_MASK, LEVELS_SHIFT, Node } from '../tape'

/** A word of the contract or of loggers, in lower case, and all that it means. JavaScript writes it to the memory, as a string that ends with zeros. */
@unmanaged
export class Word extends Node {
  first!: v128
  second!: v128
  /** Of a name: how a value with this name is read, one of `uses.ts`. 0 for other words. */
  reader!: u8
  column!: u8
  /** Names with a smaller rank come first. */
  rank!: u8
  /** What a number means, one of `levels.ts`. */
  numbering!: u8
  /** Which records only it is the name of, one of `uses.ts`. */
  condition!: u8
  /** Whether it is the first part of other names, such as `log` of `log.level`. */
  isParent!: bool
  /** What it says as a level: see `levels.ts`. */
  level!: u8
  /** Of an environment: the place of the contract's word for it. */
  environment!: u8
  /** Whether it names an object whose members count like those of the record, such as `meta`. */
  isWrapper!: bool
  /** Of a field of an entry: its place in the schema and one. */
  field!: u8
  /** Of a value that the contract allows: its column and one. */
  choiceOf!: u8

  static of(address: i32): Word {
    return changetype<Word>(address)
  }

  isText(start: i32, end: i32): bool {
    return end - start === this.bytes && isEqual(this.start, start, this.bytes)
  }
}
/** Longer strings are no words. */
const WORD_BYTES_MAX: i32 = 31
const SLOTS_MASK: i32 = 1_024 * 2 - 2

/** Indexes the words that JavaScript has written. The first are the levels of the contract. */
export function useWords(count: i32): void {
  if (WORDS + WORDS_MAX * WORD_BYTES > 0x10000) unreachable()
  for (let i = 0; i < count; i += 1) {
    const address = WORDS + i * WORD_BYTES
    const word = Word.of(address)
    word.head |= hashOf(word.start, word.end)
    let at = slotOf(word.head & HASH_MASK)
    while (load<u16>(WORD_SLOTS + at) !== 0) at = (at + 2) & SLOTS_MASK
    store<u16>(WORD_SLOTS + at, <u16>address)
    const lengths = lengthsOf(load<u8>(word.start))
    if (word.reader !== 0 || word.isParent || word.isWrapper)
      store<u32>(lengths, load<u32>(lengths) | (1 << word.bytes))
  }
}

/** The node of a level of the contract. */
export function levelNode(level: i32): i32 {
  return WORDS + level * WORD_BYTES
}

/** The node of an environment of the contract, named in any case; 0 if it is none. */
export function findEnvironment(from: i32, end: i32): i32 {
  const word = wordOf(from, end)
  const environment = word === 0 ? 0 : <i32>Word.of(word).environment
  return environment === 0 ? 0 : WORDS + environment * WORD_BYTES
}

function slotOf(hash: i32): i32 {
  return (hash >>> (LEVELS_SHIFT - 1)) & SLOTS_MASK
}

/** Where a bit is set for each length that names with this first letter have, in any case. */
function lengthsOf(first: u8): i32 {
  return WORD_LENGTHS + ((<i32>first | 0x20) << 2)
}

/** The word that a text is; 0 if it is none. */
export function findWord(from: i32, bytes: i32, hash: i32): i32 {
  let at = slotOf(hash)
  while (true) {
    const word = <i32>load<u16>(WORD_SLOTS + at)
    if (word === 0) return 0
    if (Word.of(word).isText(from, from + bytes)) return word
    at = (at + 2) & SLOTS_MASK
  }
}

/** The word that a text is, in any case; 0 if it is none. */
export function wordOf(from: i32, end: i32): i32 {
  const bytes = end - from
  if (bytes > WORD_BYTES_MAX) return 0
  toLower(from, bytes, SCRATCH)
  return findWord(SCRATCH, bytes, hashOf(SCRATCH, SCRATCH + bytes))
}

/** A name of a logger in any case. */
export class Name {
  /** Whether the name that was found last is in another case. */
  static isOtherCase: bool = false

  /** @param parent the word that names the object around it; 0 if there is none @returns the address of its word; 0 if it is none */
  @inline
  static find(parent: i32, name: Node): i32 {
    const prefix = parent === 0 ? 0 : Word.of(parent).bytes + 1
    const bytes = prefix + name.bytes
    const lengths = lengthsOf(load<u8>(parent === 0 ? name.start : Word.of(parent).start))
    // Most other names have a length that no name with their first letter has.
    if (bytes > WORD_BYTES_MAX || (load<u32>(lengths) & (1 << bytes)) === 0) return 0
    const to = SCRATCH + prefix
    if (parent !== 0) {
      v128.store(SCRATCH, Word.of(parent).first)
      v128.store(SCRATCH, Word.of(parent).second, 16)
      store<u8>(to - 1, DOT)
    }
    Name.isOtherCase = toLower(name.start, name.bytes, to)
    const isSame = parent === 0 && !Name.isOtherCase
    return findWord(SCRATCH, bytes, isSame ? name.head & HASH_MASK : hashOf(SCRATCH, SCRATCH + bytes))
  }
}

const UPPER_A: i8 = 0x41
const LETTERS: i8 = 26

/** Copies a short text in lower case. @returns whether it had letters in upper case */
export function toLower(from: i32, bytes: i32, to: i32): bool {
  let bits = 0
  for (let at = 0; at < 32; at += 16) {
    const text = v128.load(from + at)
    const isUpper = i8x16.lt_u(i8x16.sub(text, i8x16.splat(UPPER_A)), i8x16.splat(LETTERS))
    v128.store(to + at, v128.or(text, v128.and(isUpper, i8x16.splat(0x20))))
    bits |= i8x16.bitmask(isUpper) << at
  }
  return (bits & ((1 << bytes) - 1)) !== 0
}

/** A text without the blanks around it. */
export class Trimmed {
  static start: i32 = 0
  static end: i32 = 0

  static read(from: i32, end: i32): void {
    while (from < end && isBlank(load<u8>(from))) from += 1
    while (from < end && isBlank(load<u8>(end - 1))) end -= 1
    Trimmed.start = from
    Trimmed.end = end
  }
}

/** JavaScript's whitespace, as far as it is ASCII. */
export function isBlank(byte: u8): bool {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
}
