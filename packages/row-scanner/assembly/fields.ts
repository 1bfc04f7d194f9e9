import { firstOf } from './bytes'
import * as columns from './columns'
import { findWord, Word } from './loggers/words'
import { COLUMNS_MAX, FIELDS } from './memory'
import { hashOf } from './names'
import { HASH_MASK, Node } from './tape'

/** A text that was found, and what it stands for. Most entries have the same ones again: they are compared first. */
@unmanaged
class Known {
  private text!: v128
  private mask!: v128
  private bytes!: i32
  private value!: i32

  /** @returns what a text stands for; 0 if it is another one */
  @inline
  valueOf(start: i32, bytes: i32): i32 {
    const isOther = v128.any_true(v128.and(v128.xor(v128.load(start), this.text), this.mask))
    return isOther || bytes !== this.bytes ? 0 : this.value
  }

  keep(start: i32, bytes: i32, value: i32): void {
    if (bytes > 16) return
    this.text = v128.load(start)
    this.mask = firstOf(bytes)
    this.bytes = bytes
    this.value = value
  }
}
const KNOWN_BYTES: i32 = 48
/** For -1 (the start of an entry) and then for each column: the field that followed it. */
const following = memory.data((COLUMNS_MAX + 1) * KNOWN_BYTES, 16)
/** For each column: a value that is allowed. */
const allowed = memory.data(COLUMNS_MAX * KNOWN_BYTES, 16)

/** A field of an entry, in the table that JavaScript writes at `FIELDS`, in the order of the schema. Its name is a word. */
@unmanaged
export class Field {
  column!: i32
  charactersMax!: i32
  isRequired!: bool
  isObject!: bool
  /** Whether only some words are allowed: see `Word.choiceOf`. */
  hasChoices!: bool

  /** Its place in the schema. */
  get index(): i32 {
    return (changetype<i32>(this) - FIELDS) / FIELD_BYTES
  }

  static of(address: i32): Field {
    return changetype<Field>(address)
  }

  /** Whether a text is an allowed value. */
  allows(start: i32, end: i32): bool {
    const known = changetype<Known>(allowed + this.column * KNOWN_BYTES)
    if (known.valueOf(start, end - start) !== 0) return true
    const word = findWord(start, end - start, hashOf(start, end))
    if (word === 0 || <i32>Word.of(word).choiceOf !== this.column + 1) return false
    known.keep(start, end - start, word)
    return true
  }
}
export const FIELD_BYTES: i32 = 12
export const FIELDS_END: i32 = FIELDS + (columns.metadata + 1) * FIELD_BYTES

/** The address of the field with a name; 0 if there is none. @param column that of the field before it */
export function fieldOfName(name: Node, column: i32 = -1): i32 {
  const known = changetype<Known>(following + (column + 1) * KNOWN_BYTES)
  const last = known.valueOf(name.start, name.bytes)
  if (last !== 0) return last
  const word = findWord(name.start, name.bytes, name.head & HASH_MASK)
  const place = word === 0 ? 0 : <i32>Word.of(word).field
  if (place === 0) return 0
  const field = FIELDS + (place - 1) * FIELD_BYTES
  known.keep(name.start, name.bytes, field)
  return field
}

/** The field of a column. */
export function fieldOf(column: i32): Field {
  let field = FIELDS
  while (Field.of(field).column !== column) field += FIELD_BYTES
  return Field.of(field)
}
