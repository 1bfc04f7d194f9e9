/** What must follow, in the order of `assembly/faults.ts`. */
const expectations = [
  '',
  'a value',
  'a value or "]"',
  'a name in double quotes or "}"',
  'a name in double quotes',
  '":"',
  '"," or "]"',
  '"," or "}"',
  'the end of the text',
  'the rest of a string, whose control characters must be escaped',
  'one of "\\/bfnrtu after the backslash',
  'four hexadecimal digits after \\u',
  'a digit after the minus sign',
  'the end of a number, which must not have leading zeros',
  'a digit after the decimal point',
  'a digit in the exponent',
  'true',
  'false',
  'null',
] as const

/** Where a text is not JSON. */
export interface Fault {
  /** What must follow. */
  readonly fault: number
  readonly at: number
  /** Counted from 1. Columns are characters. */
  readonly line: number
  readonly column: number
}

/**
 * Describes why a text is not JSON, and where. The description quotes at most one character of the text.
 *
 * @param end the place after its last byte
 */
export function describeFault(bytes: Buffer, end: number, { fault, at, line, column }: Fault): string {
  const found = at < end ? `unexpected ${characterAt(bytes, at, end)}` : 'the text ends too early'
  return `${found} at line ${line}, column ${column}: expected ${expectations[fault]}`
}

/** A UTF-8 sequence has at most this many bytes. */
const CHARACTER_BYTES_MAX = 4

function characterAt(bytes: Buffer, at: number, end: number): string {
  const [character = ''] = bytes.toString('utf8', at, Math.min(end, at + CHARACTER_BYTES_MAX))
  return character === '"' ? "'\"'" : JSON.stringify(character)
}
