import { type Members, setMember } from '@sluice/records'

/**
 * A number that JavaScript cannot represent exactly, as its digits in the JSON. Uses JSON.rawJSON (ECMAScript 2026), which TypeScript's
 * library does not declare yet.
 */
interface RawJson {
  readonly rawJSON: string
}
const json = JSON as unknown as { rawJSON(text: string): RawJson }

/** The number with these digits. Beyond 2^53, it keeps them, so that JSON.stringify writes all of them. */
export function keepInexact(source: string): number | RawJson {
  const value = Number(source)
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value : json.rawJSON(source)
}

/** The number with this text. JSON.stringify writes it in the same way. */
export function keepText(source: string): number | RawJson {
  const value = Number(source)
  return String(value) === source ? value : json.rawJSON(source)
}

/**
 * Parses JSON like JSON.parse, but without recursion, and with the source text of each number that JavaScript cannot represent exactly, so that
 * JSON.stringify writes all their digits.
 *
 * Names with an escape are decoded one by one, never by JSON.parse as a part of a text, because of a bug in V8. V8 predicts that an
 * object has the same names as an object parsed earlier, possibly from another client: after `{"a":1,"\\":2}` JSON.parse reads the
 * name in `{"a":1,"\n":2}` as a backslash (https://issues.chromium.org/issues/521080746, seen in V8 14.6). When the oldest supported
 * Node has a fixed V8, texts with such names can be left to JSON.parse.
 *
 * @param numberOf the value of a number with this text
 * @throws SyntaxError
 */
export function parseJsonExactly(text: string, numberOf = keepInexact): unknown {
  // Checks the text.
  JSON.parse(text)
  /** The arrays and objects around the open one, and the names under which they continue. */
  const outer: (unknown[] | Members)[] = []
  const outerNames: (string | undefined)[] = []
  let open: unknown[] | Members | undefined
  /** The name of the member whose value comes next. */
  let name: string | undefined
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at)
    let value: unknown
    if (code === QUOTE) {
      const end = stringEnd(text, at + 1)
      const string = decodeString(text, at, end)
      at = end
      if (name === undefined && open !== undefined && !Array.isArray(open)) {
        name = string
        continue
      }
      value = string
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (open !== undefined) {
        outer.push(open)
        outerNames.push(name)
      }
      open = code === OPEN_BRACE ? {} : []
      name = undefined
      at += 1
      continue
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      value = open
      open = outer.pop()
      name = outerNames.pop()
      at += 1
    } else if (code > COMMA && code < COLON) {
      const end = numberEnd(text, at + 1)
      value = numberOf(text.slice(at, end))
      at = end
    } else if (code >= LOWER_A) {
      value = code === LOWER_N ? null : code === LOWER_T
      at += code === LOWER_F ? 5 : 4
    } else {
      // Whitespace, a comma or a colon.
      at += 1
      continue
    }
    if (open === undefined) return value
    if (Array.isArray(open)) open.push(value)
    else if (name !== undefined) {
      setMember(open, name, value)
      name = undefined
    }
  }
  throw new SyntaxError('The text ends too early.')
}

function stringEnd(text: string, from: number): number {
  let at = from
  for (let code = text.charCodeAt(at); code !== QUOTE; code = text.charCodeAt(at)) {
    at += code === BACKSLASH ? 2 : 1
    if (at >= text.length) throw new SyntaxError('The text ends within a string.')
  }
  return at + 1
}

/** @param start the place of the opening quote @param end the place after the closing quote */
function decodeString(text: string, start: number, end: number): string {
  const content = text.slice(start + 1, end - 1)
  return content.includes('\\') ? (JSON.parse(text.slice(start, end)) as string) : content
}

function numberEnd(text: string, from: number): number {
  let at = from
  while (isInNumber(text.charCodeAt(at))) at += 1
  return at
}

/** A digit, sign, point or exponent. */
function isInNumber(code: number): boolean {
  return (code > COMMA && code < COLON) || code === PLUS || code === LOWER_E || code === UPPER_E
}

const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const COLON = 0x3a
const UPPER_E = 0x45
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const LOWER_A = 0x61
const LOWER_E = 0x65
const LOWER_F = 0x66
const LOWER_N = 0x6e
const LOWER_T = 0x74
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
