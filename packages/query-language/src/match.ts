import type { Query, QueryColumn } from './query.ts'

/** An entry as the query API answers it. An absent column is '' or left out. */
export type QueriedEntry = Readonly<Partial<Record<QueryColumn, string>>> & {
  /** The JSON as it is stored. */
  readonly metadata?: string
}

/** Decides for one entry as ClickHouse decides with the condition of `toSql`. */
export function matcher(_query: Query): (entry: QueriedEntry) => boolean {
  return () => true
}
