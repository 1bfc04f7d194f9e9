import { randomUUID } from 'node:crypto'
import { isRawJson, keepInexact } from './exact-json.ts'

/**
 * JSON.parse, right about names.
 *
 * V8's own may give a name that is written with an escape as another one: it guesses that an object goes on like one that
 * was parsed before, by whoever sent that, and after `{"a":1,"\\":2}` takes the name in `{"a":1,"\n":2}` for a backslash
 * (https://issues.chromium.org/issues/521080746, seen in V8 14.6). Such names are rare, so a text that has one is parsed
 * with others in their places, several times slower.
 *
 * @throws SyntaxError; RangeError for a text that has such a name and thousands of levels
 */
export function parseJson(text: string): unknown {
  return hasEscapedName(text) ? parseRenamed(text, (_name, value) => value) : JSON.parse(text)
}

/**
 * Parses JSON as `parseJson` does, but keeps inexact numbers as they are written: JSON.stringify gives them back digit
 * by digit. Several times slower than JSON.parse.
 *
 * @throws SyntaxError; RangeError for a text of thousands of levels
 */
export function parseJsonExactly(text: string): unknown {
  return hasEscapedName(text) ? parseRenamed(text, keepInexact) : JSON.parse(text, keepInexact)
}

type Reviver = (name: string, value: unknown, ...context: unknown[]) => unknown

function parseRenamed(text: string, revive: Reviver): unknown {
  try {
    const { renamed, names } = renameEscaped(text)
    return JSON.parse(renamed, (name: string, value: unknown, ...context: unknown[]) =>
      restoreNames(revive(name, value, ...context), names),
    )
  } catch (error) {
    // Its message quotes the text: it is to quote what was sent.
    if (error instanceof SyntaxError) JSON.parse(text)
    throw error
  }
}

/** The text with a name of its own, without an escape, for each escaped name; and what these names stand for. */
function renameEscaped(text: string): { renamed: string; names: ReadonlyMap<string, string> } {
  const namesByToken = new Map<string, string>()
  const names = new Map<string, string>()
  // Nobody else's names are like these; who could guess them would confuse nothing but an entry of their own.
  const start = randomUUID().slice(0, 8)
  let renamed = ''
  let copied = 0
  for (let range = nextEscapedName(text, 0); range !== undefined; range = nextEscapedName(text, range.end)) {
    const token = text.slice(range.start, range.end)
    let name = namesByToken.get(token)
    if (name === undefined) {
      name = `${start}-${names.size}`
      namesByToken.set(token, name)
      names.set(name, JSON.parse(token) as string)
    }
    renamed += `${text.slice(copied, range.start)}"${name}"`
    copied = range.end
  }
  return { renamed: renamed + text.slice(copied), names }
}

function restoreNames(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawJson(value)) return value
  const entries = Object.entries(value)
  if (!entries.some(([name]) => names.has(name))) return value
  return Object.fromEntries(entries.map(([name, member]) => [names.get(name) ?? name, member]))
}

function hasEscapedName(text: string): boolean {
  return nextEscapedName(text, 0) !== undefined
}

/** The first name after `from`, which is not within a string, that has an escape; its quotes included. */
function nextEscapedName(text: string, from: number): { start: number; end: number } | undefined {
  // There is no backslash but in strings, and this one is the first of its string.
  for (let at = text.indexOf('\\', from); at !== -1;) {
    const end = stringEnd(text, at)
    if (end === -1) return undefined
    if (isColonNext(text, end)) return { start: text.lastIndexOf('"', at), end }
    at = text.indexOf('\\', end)
  }
  return undefined
}

/** Where the string ends that a backslash is in, its closing quote included; -1 if it does not end. */
function stringEnd(text: string, backslash: number): number {
  for (let quote = text.indexOf('"', backslash); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let escapes = 0
    while (text.charCodeAt(quote - 1 - escapes) === BACKSLASH) escapes += 1
    if (escapes % 2 === 0) return quote + 1
  }
  return -1
}

const BACKSLASH = 92
const COLON = 58
/** What JSON allows between its tokens, as code units: blank, tab, line feed, carriage return. */
export const jsonBlanks: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])

function isColonNext(text: string, from: number): boolean {
  let at = from
  while (jsonBlanks.has(text.charCodeAt(at))) at += 1
  return text.charCodeAt(at) === COLON
}
