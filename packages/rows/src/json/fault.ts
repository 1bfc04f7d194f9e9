import { expectations } from './grammar.ts'
import type { JsonScanner } from './scanner.ts'

/**
 * Describes why a text is not JSON, and where. The description quotes at most one character of the text.
 *
 * @param start the first byte of the text @param end the place after its last byte
 * @param scanner an invalid one
 */
export function describeFault(
  bytes: Uint8Array,
  start: number,
  end: number,
  { at, state }: Pick<JsonScanner, 'at' | 'state'>,
): string {
  const { line, column } = positionOf(bytes, start, at)
  const found = at < end ? `unexpected ${characterAt(bytes, at, end)}` : 'the text ends too early'
  return `${found} at line ${line}, column ${column}: expected ${expectations[state]}`
}

/** The line and the column of a byte, counted from 1. Columns are characters. */
function positionOf(bytes: Uint8Array, start: number, at: number): { line: number; column: number } {
  let line = 1
  let column = 1
  for (let i = start; i < at; i += 1) {
    const byte = bytes[i] ?? 0
    if (byte === NEWLINE) {
      line += 1
      column = 1
    } else if ((byte & 0xc0) !== 0x80) column += 1
  }
  return { line, column }
}

/** A UTF-8 sequence has at most this many bytes. */
const CHARACTER_BYTES_MAX = 4
const NEWLINE = 0x0a

function characterAt(bytes: Uint8Array, at: number, end: number): string {
  const text = Buffer.from(bytes.subarray(at, Math.min(end, at + CHARACTER_BYTES_MAX))).toString()
  const [character = ''] = text
  return character === '"' ? "'\"'" : JSON.stringify(character)
}
