import { numberText } from './values.ts'

/** A value in JSON. Strings, numbers, true, false and null are as they are written. */
export type Json = string | readonly Json[] | ReadonlyMap<string, Json>

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]|[^\s{}[\]:,"]+/g

/**
 * Parses JSON that is known to be valid. Keeps the digits of numbers, and the first of several values with the same name, as ClickHouse
 * does. Without recursion.
 */
export function parseJson(text: string): Json {
  const root: Json[] = []
  const outer: (Json[] | Map<string, Json>)[] = []
  let open: Json[] | Map<string, Json> = root
  let name: string | undefined
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '}' || token === ']') {
      open = outer.pop() ?? root
      continue
    }
    if (open instanceof Map && name === undefined) {
      name = scalarText(token)
      continue
    }
    const value = token === '{' ? new Map<string, Json>() : token === '[' ? [] : token
    if (Array.isArray(open)) open.push(value)
    else if (name !== undefined && !open.has(name)) open.set(name, value)
    name = undefined
    if (typeof value !== 'string') {
      outer.push(open)
      open = value
    }
  }
  return root[0] ?? 'null'
}

/** The text of a string, number, true, false or null. */
export function scalarText(source: string): string {
  if (source.startsWith('"'))
    return source.includes('\\') ? (JSON.parse(source) as string) : source.slice(1, -1)
  return /^[-\d]/.test(source) ? numberText(source) : source
}
