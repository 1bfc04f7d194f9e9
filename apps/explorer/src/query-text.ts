import { queryColumns } from '@sluice/query-language'

/** A part of the text of a query, for colours and completion. What it means is decided by @sluice/query-language. */
export interface Token {
  readonly kind: 'field' | 'operator' | 'string' | 'text'
  readonly from: number
  readonly end: number
}

const tokenPattern =
  /(?<string>"(?:[^"\\]|\\.)*"?)|(?<operator>\b(?:AND|OR|NOT)\b(?![:.])|[()]|(?<=^|[\s(])-(?=\S)|(?<=:)(?:>=|<=|[=<>]))|(?<field>(?<=(?:^|[\s(])-?)[^\s():"-][^\s():"]*:)|(?<text>[^\s()"]+)/g

export function tokensOf(text: string): Token[] {
  return [...text.matchAll(tokenPattern)].flatMap(({ groups = {}, index, 0: found }) => {
    // A second colon belongs to the value: `a:b:c`.
    const kind = (['string', 'operator', 'field', 'text'] as const).find((name) => groups[name] !== undefined)
    return kind === undefined ? [] : [{ kind, from: index, end: index + found.length }]
  })
}

const needsQuotes = /^$|[\s()"*\\\p{C}]|^[=<>-]|\.\.|^(?:AND|OR|NOT)$/u
const string = (text: string): string =>
  JSON.stringify(text).replaceAll('\\b', '\\u0008').replaceAll('\\f', '\\u000c')

/** A value as the language reads it back. */
export const quoted = (value: string): string => (needsQuotes.test(value) ? string(value) : value)

/** The name of a field as the language reads it back. */
const fieldText = (field: string): string =>
  field
    .split('.')
    .map((name, index) =>
      (index === 0 ? /^[\p{L}_@$][\p{L}\p{N}_@$-]*$/u : /^[\p{L}\p{N}_@$-]+$/u).test(name)
        ? name
        : string(name),
    )
    .join('.')

/** The term that an entry matches if a field has a value. In some columns a plain value is contained. */
export const termOf = (field: string, value: string): string =>
  `${fieldText(field)}:${(queryColumns as Readonly<Record<string, string>>)[field] === 'contained' ? '=' : ''}${quoted(value)}`

/** The terms of a text at its top level, and whether an OR is among them. */
function topTerms(text: string): { readonly terms: string[]; readonly hasOr: boolean } {
  const terms: string[] = []
  let depth = 0
  let start = 0
  let inString = false
  const cut = (at: number): void => {
    if (at > start) terms.push(text.slice(start, at))
    start = at + 1
  }
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? ''
    if (inString && character === '\\') at += 1
    else if (character === '"') inString = !inString
    else if (!inString && character === '(') depth += 1
    else if (!inString && character === ')') depth -= 1
    else if (!inString && depth === 0 && /\s/.test(character)) cut(at)
  }
  cut(text.length)
  return { terms, hasOr: terms.includes('OR') }
}

export const hasTerm = (text: string, term: string): boolean => topTerms(text).terms.includes(term)

/** Adds a term, or removes it if the text has it. Its opposite is replaced. */
export function toggleTerm(text: string, field: string, value: string, exclude: boolean): string {
  const term = termOf(field, value)
  const wanted = exclude ? `-${term}` : term
  const { terms, hasOr } = topTerms(text.trim())
  const rest = terms.filter((other) => other !== term && other !== `-${term}`)
  if (hasOr) return terms.length === 0 ? wanted : `(${text.trim()}) ${wanted}`
  return (terms.includes(wanted) ? rest : [...rest, wanted]).join(' ')
}

/** What can be completed at a place in the text. */
export interface Completion {
  /** Empty: the name of a field is completed. */
  readonly field: string
  readonly prefix: string
  readonly from: number
  readonly end: number
}

export function completionAt(text: string, caret: number): Completion | undefined {
  const before = text.slice(0, caret)
  // Inside a string that is no value, nothing is completed.
  const [, field = '', prefix = ''] =
    /(?:^|[\s(])-?([^\s():"-][^\s():"]*):(?:\(?(?:[^()]*\sOR\s)?)("(?:[^"\\]|\\.)*|[^\s()"]*)$/.exec(
      before,
    ) ?? []
  const rest = /^[^\s()]*/.exec(text.slice(caret))?.[0].length ?? 0
  if (field !== '' && !/^[=<>]/.test(prefix))
    return { field, prefix: prefix.replace(/^"/, ''), from: caret - prefix.length, end: caret + rest }
  const [word = ''] = /[^\s():"]*$/.exec(before) ?? []
  const name = word.replace(/^-/, '')
  const quotes = before.split('"').length - 1
  if (quotes % 2 === 1 || before.at(-name.length - 1) === ':') return undefined
  return { field: '', prefix: name, from: caret - name.length, end: caret + rest }
}
