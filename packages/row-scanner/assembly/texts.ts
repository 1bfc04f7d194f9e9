import { BACKSLASH, copy, NEWLINE, QUOTE, TAB } from './bytes'
import { Cursor } from './cursor'
import { TEXTS } from './memory'
import { escapeBytes, escaped, plainEnd, shortEscape, writeCharacter } from './strings'

/** Values of `Text.start`: the field is absent; or it is present without a text here, because it is null or the metadata. */
export const ABSENT: i32 = 0
export const WITHOUT_TEXT: i32 = -1

/** The position of a column's text in the body. */
@unmanaged
export class Text {
  start!: i32
  end!: i32
  isEscaped!: i32

  static of(column: i32): Text {
    return changetype<Text>(TEXTS + (column << 4))
  }

  get isThere(): bool {
    return this.start > 0
  }

  get bytes(): i32 {
    return this.end - this.start
  }

  /** Finds the end of the text at the cursor, and moves the cursor after it. */
  scan(): bool {
    const start = Cursor.at + 1
    let at = plainEnd(start)
    let isEscaped = 0
    while (load<u8>(at) === BACKSLASH) {
      // The escape is validated when it is written. The cursor must not pass the zero at the end of the body.
      if (load<u8>(at + 1) === 0) return false
      isEscaped = 1
      at = plainEnd(at + 2)
    }
    this.start = start
    this.end = at
    this.isEscaped = isEscaped
    Cursor.at = at + 1
    return load<u8>(at) === QUOTE
  }

  /** Writes the text as TabSeparated. @returns its end; 0 if the text is invalid JSON */
  write(to: i32): i32 {
    if (!this.isThere) return to
    return this.isEscaped ? this.writeUnescaped(to) : copy(to, this.start, this.bytes)
  }

  private writeUnescaped(to: i32): i32 {
    const end = this.end
    let at = this.start
    while (at < end) {
      const block = v128.load(at)
      v128.store(to, block)
      const backslashes = i8x16.bitmask(i8x16.eq(block, i8x16.splat(BACKSLASH)))
      const plain = min(backslashes === 0 ? 16 : ctz(backslashes), end - at)
      to += plain
      at += plain
      // There is no backslash, or it is after the text.
      if (plain === 16 || at === end) continue
      const character = escaped(at + 1)
      if (character < 0) return 0
      at += 1 + escapeBytes(at + 1)
      to = writeText(to, character)
    }
    return to
  }
}

function writeText(to: i32, character: i32): i32 {
  if (character !== BACKSLASH && character !== TAB && character !== NEWLINE)
    return writeCharacter(to, character)
  // TabSeparated escapes these three as JSON does.
  store<u8>(to, BACKSLASH)
  store<u8>(to + 1, shortEscape(character))
  return to + 2
}
