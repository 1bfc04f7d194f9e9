import type { Query } from './query.ts'

/** A condition, with placeholders such as `{q0:String}`, and the values of its parameters. */
export interface SqlCondition {
  readonly sql: string
  readonly parameters: Readonly<Record<string, unknown>>
}

/** The condition on the columns of the table `logs`. All that a user wrote is in parameters. */
export function toSql(_query: Query): SqlCondition {
  return { sql: 'true', parameters: {} }
}
