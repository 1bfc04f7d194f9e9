/**
 * The columns of `logs` that a query can name, and how their values are compared. In text that is `contained`, a query searches, in any
 * case. Other text is equal or not. A name that is not here is a path in the metadata.
 */
export const queryColumns = {
  id: 'id',
  timestamp: 'time',
  received_at: 'time',
  level: 'level',
  service: 'text',
  environment: 'text',
  source: 'text',
  message: 'contained',
  url: 'contained',
  pathname: 'text',
  stack: 'contained',
} as const
export type QueryColumn = keyof typeof queryColumns

export const queryLimits = {
  /** In UTF-16. More than a person writes, and little enough for the address of a request once it is percent-encoded. */
  lengthMax: 4_096,
  /** Values, groups not counted. ClickHouse analyzes the SQL of a path in about 10 ms before it reads anything. */
  termsMax: 32,
  /** Parentheses and negations in each other. Parser, SQL and evaluation are recursive. */
  depthMax: 32,
  /** Names in a path, as many as metadata has levels. Each may begin a name with dots, which is another lookup. */
  pathNamesMax: 16,
  /** After so many errors, further ones do not help. */
  errorsMax: 8,
} as const

/** What a term is about: a column, or a path in the metadata. */
export type Field =
  | { readonly type: 'column'; readonly name: QueryColumn }
  | { readonly type: 'path'; readonly path: readonly string[] }

export interface Bound {
  readonly text: string
  readonly inclusive: boolean
}

/** What a value must be. Times are in the form of `timeText`. */
export type Test =
  | { readonly type: 'exists' }
  | { readonly type: 'contains'; readonly text: string }
  | { readonly type: 'prefix'; readonly text: string }
  /** It is one of these texts. */
  | { readonly type: 'equals'; readonly texts: readonly string[] }
  | { readonly type: 'range'; readonly from?: Bound; readonly to?: Bound }

/** A condition on one field. Its text is from `position` to `end` in the query. */
export interface Term {
  readonly type: 'term'
  readonly position: number
  readonly end: number
  readonly field: Field
  readonly test: Test
}

export type Query =
  | { readonly type: 'all' }
  | { readonly type: 'and'; readonly operands: readonly Query[] }
  | { readonly type: 'or'; readonly operands: readonly Query[] }
  | { readonly type: 'not'; readonly operand: Query }
  | Term

/** The texts whose occurrences in `message`, in any case, show why an entry matches. */
export function highlights(query: Query): readonly string[] {
  return [...new Set(messageTexts(query))]
}

function messageTexts(query: Query): readonly string[] {
  if (query.type === 'and' || query.type === 'or') return query.operands.flatMap(messageTexts)
  if (query.type !== 'term' || query.field.type !== 'column' || query.field.name !== 'message') return []
  const { test } = query
  const texts =
    test.type === 'equals'
      ? test.texts
      : test.type === 'contains' || test.type === 'prefix'
        ? [test.text]
        : []
  return texts.filter((text) => text !== '')
}
