import { parseQuery } from '../../src/parse.ts'
import type { Query } from '../../src/query.ts'

/** The tree of a text without errors. */
export function queryOf(text: string): Query {
  const result = parseQuery(text)
  if ('query' in result) return result.query
  throw new Error(`${text}: ${JSON.stringify(result.errors)}`)
}
