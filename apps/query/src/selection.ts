import type { LogQuery } from '@sluice/clickhouse'
import type { SqlCondition } from '@sluice/query-language'
import type { Range } from './cursor.ts'

/** Entries of a project: those in a range of timestamps that match a query. */
export interface Selection {
  readonly projectId: string
  readonly condition: SqlCondition
  readonly range: Range
}

const timeOfMicros = (parameter: string): string => `fromUnixTimestamp64Micro({${parameter}:Int64}, 'UTC')`
export const timeOfMs = (parameter: string): string => `fromUnixTimestamp64Milli({${parameter}:Int64}, 'UTC')`

/** ClickHouse sorts UUIDs by their second half. Numbers sort as the text of the ids. */
export const ID_ORDER = 'toUInt128(id)'

/**
 * A query of the entries of a selection.
 *
 * @param sql makes it of `FROM … WHERE …`, to which conditions may be added with AND
 */
export function queryOf(
  { condition, range }: Omit<Selection, 'projectId'>,
  sql: (from: string) => string,
  parameters: Readonly<Record<string, unknown>> = {},
): LogQuery {
  const where = `AND timestamp >= ${timeOfMicros('from')} AND timestamp < ${timeOfMicros('until')} AND (${condition.sql})`
  return {
    ...(condition.first !== undefined && { first: condition.first }),
    sql: (from) => sql(`${from} ${where}`),
    parameters: {
      ...condition.parameters,
      from: String(range.fromUs),
      until: String(range.untilUs),
      ...parameters,
    },
  }
}
