import { buildExactly } from './builder.ts'
import { describeFault } from './fault.ts'
import { JsonScanner } from './scanner.ts'

/**
 * Parses JSON like JSON.parse, but without its bug with escaped names (`buildExactly`), and keeps the source text of inexact numbers, so
 * that JSON.stringify writes all their digits.
 *
 * @throws SyntaxError
 */
export function parseJsonExactly(text: string): unknown {
  const bytes = Buffer.from(text)
  const scanner = new JsonScanner(bytes)
  scanner.scan(bytes.length)
  if (scanner.isInvalid) throw new SyntaxError(describeFault(bytes, 0, bytes.length, scanner))
  return buildExactly(text)
}

/**
 * Parses a text that `JsonScanner` has checked.
 *
 * @param isExact whether it has an escape in a name, or a number that JavaScript may be unable to represent exactly. Other texts are left
 *   to JSON.parse, which takes about half of the time.
 */
export function parseChecked(text: string, isExact: boolean): unknown {
  return isExact ? buildExactly(text) : JSON.parse(text)
}
