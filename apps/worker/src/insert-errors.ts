import { ClickHouseError } from '@clickhouse/client'

/**
 * What to do about an insert that failed:
 * - `transient`: it will pass; the same insert is tried again, for ever
 * - `poison`: ClickHouse refuses the rows themselves; trying again changes nothing
 */
export type InsertFailure = 'transient' | 'poison'

/**
 * ClickHouse's error codes that speak of the rows themselves (its src/Common/ErrorCodes.cpp). All others pass, or are for
 * people to mend while the rows wait: a table that is missing, a password that is wrong, a disk that is full.
 */
const poisonCodes: ReadonlyMap<string, string> = new Map([
  ['6', 'CANNOT_PARSE_TEXT'],
  ['25', 'CANNOT_PARSE_ESCAPE_SEQUENCE'],
  ['26', 'CANNOT_PARSE_QUOTED_STRING'],
  ['27', 'CANNOT_PARSE_INPUT_ASSERTION_FAILED'],
  ['38', 'CANNOT_PARSE_DATE'],
  ['41', 'CANNOT_PARSE_DATETIME'],
  ['53', 'TYPE_MISMATCH'],
  ['69', 'ARGUMENT_OUT_OF_BOUND'],
  ['70', 'CANNOT_CONVERT_TYPE'],
  ['72', 'CANNOT_PARSE_NUMBER'],
  ['117', 'INCORRECT_DATA'],
  ['131', 'TOO_LARGE_STRING_SIZE'],
  ['349', 'CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN'],
  ['376', 'CANNOT_PARSE_UUID'],
])

export function classifyInsertError(error: unknown): InsertFailure {
  return error instanceof ClickHouseError && poisonCodes.has(error.code) ? 'poison' : 'transient'
}

/** What went wrong, for a log: ClickHouse quotes rows in its messages, so of its errors only the code and the name. */
export function describeError(error: unknown): string {
  if (error instanceof ClickHouseError) return `ClickHouse ${error.code} ${error.type ?? ''}`.trim()
  return error instanceof Error ? `${error.name}: ${error.message.slice(0, 200)}` : 'unknown'
}
