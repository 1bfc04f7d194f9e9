import { FIELDS, FOLLOWING } from './memory'
import { Node } from './tape'

/** A string of at most fifteen bytes with its closing quote, as JavaScript writes it to the memory. */
@unmanaged
class Pattern {
  text!: v128
  /** 0xff for each byte of the string, 0 for the others. */
  mask!: v128

  isAt(at: i32): bool {
    return !v128.any_true(v128.and(v128.xor(v128.load(at), this.text), this.mask))
  }
}

const PATTERN_BYTES: i32 = 32

/** Bits of `Field.flags`. */
const REQUIRED: i32 = 1
const OBJECT: i32 = 2

/** A field of an entry, in the table that JavaScript writes at `FIELDS`. */
@unmanaged
export class Field extends Pattern {
  /** The length of its name. */
  bytes!: i32
  column!: i32
  charactersMax!: i32
  /** The start and the end of the patterns of the allowed values. */
  choices!: i32
  choicesEnd!: i32
  /** The address of the next field; 0 after the last one. */
  next!: i32
  /** Its place in the schema. */
  index!: i32
  flags!: i32

  get isRequired(): bool {
    return (this.flags & REQUIRED) !== 0
  }

  get isObject(): bool {
    return (this.flags & OBJECT) !== 0
  }

  get hasChoices(): bool {
    return this.choices !== this.choicesEnd
  }

  static of(address: i32): Field {
    return changetype<Field>(address)
  }

  /** Whether the string at an address, which is followed by a quote, is an allowed value. */
  allows(at: i32): bool {
    for (let choice = this.choices; choice < this.choicesEnd; choice += PATTERN_BYTES)
      if (changetype<Pattern>(choice).isAt(at)) return true
    return false
  }
}

/**
 * Finds the field with a name.
 *
 * A client sends its fields in the same order every time, so the field that followed a column last time is nearly always the right one. It is
 * compared first.
 *
 * @param column the column of the preceding field; -1 for the first field
 * @returns the address of the field; 0 if no field has this name
 */
export function fieldAfter(column: i32, name: Node): i32 {
  const guess = FOLLOWING + ((column + 1) << 2)
  const known = load<i32>(guess)
  if (known !== 0 && Field.of(known).isAt(name.start)) return known
  for (let field = FIELDS; field !== 0; field = Field.of(field).next) {
    if (!Field.of(field).isAt(name.start)) continue
    store<i32>(guess, field)
    return field
  }
  return 0
}

/** The field of a column. */
export function fieldOf(column: i32): Field {
  let field = FIELDS
  while (Field.of(field).column !== column) field = Field.of(field).next
  return Field.of(field)
}
