import { Cursor } from './cursor'
import { FIELDS, FOLLOWING } from './memory'

/** A text of at most fifteen bytes and the quote behind it, as JavaScript has written it to the memory. */
@unmanaged
class Pattern {
  text!: v128
  /** All ones where the text has a byte. */
  mask!: v128

  isAt(at: i32): bool {
    return !v128.any_true(v128.and(v128.xor(v128.load(at), this.text), this.mask))
  }
}

const PATTERN_BYTES: i32 = 32

/** A field of an entry, as JavaScript has written it to the memory, at `FIELDS` and behind. */
@unmanaged
export class Field extends Pattern {
  /** Of its name. */
  bytes!: i32
  column!: i32
  /** Texts of as many bytes are never too long. */
  bytesMax!: i32
  /** Where the patterns of the values that are allowed start and end: at one place where every value is. */
  choices!: i32
  choicesEnd!: i32
  /** Where the next field is; 0 behind the last one. */
  next!: i32

  /** Whether the text that begins at a place is one of those that are allowed. */
  allows(at: i32): bool {
    if (this.choices === this.choicesEnd) return true
    for (let choice = this.choices; choice < this.choicesEnd; choice += PATTERN_BYTES) {
      if (changetype<Pattern>(choice).isAt(at)) return true
    }
    return false
  }
}

/**
 * The field whose name begins at the cursor; null for none.
 *
 * A client sends fields in one order, so that the one that followed a column last time is nearly always right.
 *
 * @param column that of the field before it; -1 for none
 */
export function fieldAfter(column: i32): Field | null {
  const guess = FOLLOWING + ((column + 1) << 2)
  const at = Cursor.at
  let field = load<i32>(guess)
  if (field !== 0 && changetype<Field>(field).isAt(at)) return changetype<Field>(field)
  for (field = FIELDS; field !== 0; field = changetype<Field>(field).next) {
    if (!changetype<Field>(field).isAt(at)) continue
    store<i32>(guess, field)
    return changetype<Field>(field)
  }
  return null
}
