import { randomUUID } from 'node:crypto'
import { isRawJson, keepInexact } from './exact-json.ts'

/**
 * JSON.parse without V8's bug with escaped names.
 *
 * V8 may return a name that is written with an escape as another name. It predicts that an object has the same names as an object
 * parsed earlier, possibly from another client: after `{"a":1,"\\":2}` it reads the name in `{"a":1,"\n":2}` as a backslash
 * (https://issues.chromium.org/issues/521080746, seen in V8 14.6). Such names are rare. A text that has one is parsed with
 * placeholders for these names, which is several times slower. The workaround can be removed when the oldest supported Node has a
 * fixed V8.
 *
 * @throws SyntaxError; RangeError for a text that has such a name and thousands of levels
 */
export function parseJson(text: string): unknown {
  return hasEscapedName(text) ? parseRenamed(text, (_name, value) => value) : JSON.parse(text)
}

/**
 * Parses JSON like `parseJson`, but keeps the source text of inexact numbers, so that JSON.stringify writes all their digits.
 * Several times slower than JSON.parse.
 *
 * @throws SyntaxError; RangeError for a text with thousands of levels
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
    // The message of the error quotes the text. It must quote what the client sent.
    if (error instanceof SyntaxError) JSON.parse(text)
    throw error
  }
}

/** Replaces each escaped name with a placeholder without escapes. Returns the text, and the name for each placeholder. */
function renameEscaped(text: string): { renamed: string; names: ReadonlyMap<string, string> } {
  const namesByToken = new Map<string, string>()
  const names = new Map<string, string>()
  // Random, so that no name of a client equals a placeholder. A client that guessed one would only confuse its own entry.
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

/** The first name with an escape after `from`, including its quotes. `from` must not be inside a string. */
function nextEscapedName(text: string, from: number): { start: number; end: number } | undefined {
  // JSON has backslashes only in strings, and this one is the first of its string.
  for (let at = text.indexOf('\\', from); at !== -1;) {
    const end = stringEnd(text, at)
    if (end === -1) return undefined
    if (isColonNext(text, end)) return { start: text.lastIndexOf('"', at), end }
    at = text.indexOf('\\', end)
  }
  return undefined
}

/** The end of the string that contains a backslash, after its closing quote; -1 if the string does not end. */
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
/** JSON's whitespace, as code units: space, tab, line feed, carriage return. */
export const jsonWhitespace: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])

function isColonNext(text: string, from: number): boolean {
  let at = from
  while (jsonWhitespace.has(text.charCodeAt(at))) at += 1
  return text.charCodeAt(at) === COLON
}
