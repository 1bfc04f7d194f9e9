import { SCRATCH, WORD_LENGTHS, WORD_SLOTS, WORDS, WORDS_MAX } from '../memory'
import { hashOf } from '../names'
import { HASH_MASK, LEVELS_SHIFT, Node } from '../tape'

/** A word that loggers use, in lower case, as JavaScript writes it to the memory. */
@unmanaged
export class Word {
  first!: v128
  second!: v128
  bytes!: i32
  /** Of a name its role, of another word the place of the level or of the environment in the contract. */
  value!: i32
  /** Of a name with a role: names with a smaller rank come first. Of the name of a level: 1 if it says no more than the level. */
  rank!: i32
  /** Whether the name is the first part of others, such as `log` of `log.level`. */
  isParent!: i32

  static of(address: i32): Word {
    return changetype<Word>(address)
  }
}
const WORD_BYTES: i32 = 48
/** Longer strings are no words. */
export const WORD_BYTES_MAX: i32 = 31
/** Of a name that is only a parent. */
export const NO_ROLE: i32 = -1
/** Added to the rank of a name in another case: if a record has `level` and `Level`, the first is taken. Ranks are even. */
export const OTHER_CASE_RANK: i32 = 1

const SLOTS: i32 = 1_024
const NAMES: i32 = WORD_SLOTS
const LEVELS: i32 = NAMES + SLOTS * 2
const ENVIRONMENTS: i32 = LEVELS + SLOTS * 2

/** The first words of the levels and of the environments are those of the contract. */
let levelWords: i32 = 0
let environmentWords: i32 = 0

/** Indexes the words that JavaScript has written: the names, then the levels, then the environments. */
export function indexWords(names: i32, levels: i32, environments: i32): void {
  if (WORDS + WORDS_MAX * WORD_BYTES > 0x10000) unreachable()
  levelWords = WORDS + names * WORD_BYTES
  environmentWords = levelWords + levels * WORD_BYTES
  for (let word = WORDS; word < levelWords; word += WORD_BYTES) {
    add(NAMES, word)
    const first = <i32>load<u8>(word)
    addLength(first, Word.of(word).bytes)
    if (first >= 0x61 && first <= 0x7a) addLength(first - 0x20, Word.of(word).bytes)
  }
  for (let word = levelWords; word < environmentWords; word += WORD_BYTES) add(LEVELS, word)
  for (let i = 0; i < environments; i += 1) add(ENVIRONMENTS, environmentWords + i * WORD_BYTES)
}

export function levelWord(level: i32): Word {
  return Word.of(levelWords + level * WORD_BYTES)
}

export function environmentWord(environment: i32): Word {
  return Word.of(environmentWords + environment * WORD_BYTES)
}

function add(slots: i32, word: i32): void {
  let at = slotOf(hashOf(word, word + Word.of(word).bytes))
  while (load<u16>(slots + at) !== 0) at = (at + 2) & (SLOTS * 2 - 1)
  store<u16>(slots + at, <u16>word)
}

function slotOf(hash: i32): i32 {
  return (hash >>> (LEVELS_SHIFT - 1)) & (SLOTS * 2 - 2)
}

function addLength(first: i32, bytes: i32): void {
  const at = WORD_LENGTHS + (first << 2)
  store<u32>(at, load<u32>(at) | ((<u32>1) << (<u32>bytes)))
}

function find(slots: i32, from: i32, bytes: i32, hash: i32): i32 {
  let at = slotOf(hash)
  while (true) {
    const word = <i32>load<u16>(slots + at)
    if (word === 0) return 0
    if (Word.of(word).bytes === bytes && memory.compare(word, from, bytes) === 0) return word
    at = (at + 2) & (SLOTS * 2 - 1)
  }
}

/** Whether a name has a length that names with its first letter have. Most others have not. */
export function mayBeName(first: u8, bytes: i32): bool {
  return (
    bytes <= WORD_BYTES_MAX &&
    (load<u32>(WORD_LENGTHS + ((<i32>first) << 2)) & ((<u32>1) << (<u32>bytes))) !== 0
  )
}

const UPPER_A: i8 = 0x41
const LETTERS: i8 = 26

/** Copies a short text in lower case. @returns whether it had letters in upper case */
export function toLower(from: i32, bytes: i32, to: i32): bool {
  const first = v128.load(from)
  const second = v128.load(from + 16)
  const upperOfFirst = i8x16.lt_u(i8x16.sub(first, i8x16.splat(UPPER_A)), i8x16.splat(LETTERS))
  const upperOfSecond = i8x16.lt_u(i8x16.sub(second, i8x16.splat(UPPER_A)), i8x16.splat(LETTERS))
  v128.store(to, v128.or(first, v128.and(upperOfFirst, i8x16.splat(0x20))))
  v128.store(to + 16, v128.or(second, v128.and(upperOfSecond, i8x16.splat(0x20))))
  const bits = i8x16.bitmask(upperOfFirst) | (i8x16.bitmask(upperOfSecond) << 16)
  return (bits & ((1 << bytes) - 1)) !== 0
}

/** A name of a logger in any case. */
export class Name {
  /** Whether the name that was found last is in another case. */
  static isOtherCase: bool = false

  /** @returns the address of its word; 0 if it is none */
  static find(name: Node): i32 {
    const bytes = name.bytes
    if (!mayBeName(load<u8>(name.start), bytes)) return 0
    Name.isOtherCase = toLower(name.start, bytes, SCRATCH)
    const hash = Name.isOtherCase ? hashOf(SCRATCH, SCRATCH + bytes) : name.head & HASH_MASK
    return find(NAMES, SCRATCH, bytes, hash)
  }

  /** Finds the name of a member of an object with a name: `log.level`. @param isOtherCase whether the name of the object is in another case */
  static findChild(parent: Word, isOtherCase: bool, name: Node): i32 {
    const bytes = parent.bytes + 1 + name.bytes
    if (!mayBeName(<u8>i8x16.extract_lane_u(parent.first, 0), bytes)) return 0
    v128.store(SCRATCH, parent.first)
    v128.store(SCRATCH, parent.second, 16)
    const at = SCRATCH + parent.bytes
    store<u8>(at, 0x2e)
    Name.isOtherCase = toLower(name.start, name.bytes, at + 1) || isOtherCase
    return find(NAMES, SCRATCH, bytes, hashOf(SCRATCH, SCRATCH + bytes))
  }
}

/** The word of a level, in any case and with whitespace around it; 0 if it is none. */
export function findLevel(from: i32, end: i32): i32 {
  if (end - from > 32) return 0
  while (from < end && isBlank(load<u8>(from))) from += 1
  while (from < end && isBlank(load<u8>(end - 1))) end -= 1
  return findWord(LEVELS, from, end)
}

/** The word of an environment, in any case; 0 if it is none. */
export function findEnvironment(from: i32, end: i32): i32 {
  return findWord(ENVIRONMENTS, from, end)
}

function findWord(slots: i32, from: i32, end: i32): i32 {
  const bytes = end - from
  if (bytes > WORD_BYTES_MAX) return 0
  toLower(from, bytes, SCRATCH)
  return find(slots, SCRATCH, bytes, hashOf(SCRATCH, SCRATCH + bytes))
}

/** JavaScript's whitespace, as far as it is ASCII. */
export function isBlank(byte: u8): bool {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
}
