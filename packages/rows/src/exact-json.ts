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
  const outer: { readonly value: unknown[] | Members; readonly name: string | undefined }[] = []
  let open: unknown[] | Members | undefined
  /** The name of the member whose value comes next. */
  let name: string | undefined
  for (const token of text.match(TOKEN) ?? []) {
    let value: unknown
    if (token === '{' || token === '[') {
      if (open !== undefined) outer.push({ value: open, name })
      open = token === '{' ? {} : []
      name = undefined
      continue
    } else if (token === '}' || token === ']') {
      value = open
      const around = outer.pop()
      open = around?.value
      name = around?.name
    } else if (token.startsWith('"') && !token.includes('\\')) value = token.slice(1, -1)
    else value = NUMBER.test(token) ? numberOf(token) : JSON.parse(token)
    if (open === undefined) return value
    if (Array.isArray(open)) open.push(value)
    else if (name === undefined) name = value as string
    else {
      setMember(open, name, value)
      name = undefined
    }
  }
  throw new SyntaxError('The text ends too early.')
}

/** A bracket, a string, or a number or word, of a text that is JSON. */
const TOKEN = /[[\]{}]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s,:[\]{}"]+/g
const NUMBER = /^[-\d]/
