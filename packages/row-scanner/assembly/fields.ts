import { Cursor } from './cursor'
import { FIELDS, FOLLOWING } from './memory'

/** A text of at most fifteen bytes with its closing quote, as JavaScript writes it to the memory. */
@unmanaged
class Pattern {
  text!: v128
  /** 0xff for each byte of the text, 0 for the others. */
  mask!: v128

  isAt(at: i32): bool {
    return !v128.any_true(v128.and(v128.xor(v128.load(at), this.text), this.mask))
  }
}

const PATTERN_BYTES: i32 = 32

/** A field of an entry, in the table that JavaScript writes at `FIELDS`. */
@unmanaged
export class Field extends Pattern {
  /** The length of its name. */
  bytes!: i32
  column!: i32
  /** Texts of up to this many bytes are never too long: the schema limits characters. */
  bytesMax!: i32
  /** The start and the end of the patterns of the allowed values. Both are equal if every value is allowed. */
  choices!: i32
  choicesEnd!: i32
  /** The address of the next field; 0 after the last one. */
  next!: i32

  /** Whether the text at an address is an allowed value. */
  allows(at: i32): bool {
    if (this.choices === this.choicesEnd) return true
    for (let choice = this.choices; choice < this.choicesEnd; choice += PATTERN_BYTES) {
      if (changetype<Pattern>(choice).isAt(at)) return true
    }
    return false
  }
}

/**
 * Finds the field whose name begins at the cursor.
 *
 * A client sends its fields in the same order every time, so the field that followed a column last time is nearly always the
 * right one. It is compared first.
 *
 * @param column the column of the preceding field; -1 for the first field
 * @returns null if no field has this name
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
