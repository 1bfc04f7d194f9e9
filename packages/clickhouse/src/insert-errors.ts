import { ClickHouseError } from '@clickhouse/client'

export { ClickHouseError } from '@clickhouse/client'

/**
 * How to handle a failed insert:
 * - `transient`: the error will pass; the same insert is retried forever
 * - `too_big`: the insert may succeed with fewer rows; the batch is split, and a single row is retried forever
 * - `poison`: ClickHouse rejects the rows themselves; the batch is split down to the invalid rows, which are dead-lettered
 */
export type InsertFailure = 'transient' | 'too_big' | 'poison'

interface CodeEntry {
  readonly name: string
  readonly failure: InsertFailure
}

/**
 * ClickHouse's error codes (its src/Common/ErrorCodes.cpp). An error that is not ClickHouse's (connection refused, a timeout) is
 * transient: the deduplication token makes a retry safe. A code that is not listed is transient too, but is reported as unknown,
 * because it may have to be added here.
 */
const codes: ReadonlyMap<string, CodeEntry> = new Map<string, CodeEntry>([
  // The rows themselves.
  ['6', { name: 'CANNOT_PARSE_TEXT', failure: 'poison' }],
  ['25', { name: 'CANNOT_PARSE_ESCAPE_SEQUENCE', failure: 'poison' }],
  ['26', { name: 'CANNOT_PARSE_QUOTED_STRING', failure: 'poison' }],
  ['27', { name: 'CANNOT_PARSE_INPUT_ASSERTION_FAILED', failure: 'poison' }],
  ['33', { name: 'CANNOT_READ_ALL_DATA', failure: 'poison' }],
  ['38', { name: 'CANNOT_PARSE_DATE', failure: 'poison' }],
  ['41', { name: 'CANNOT_PARSE_DATETIME', failure: 'poison' }],
  ['53', { name: 'TYPE_MISMATCH', failure: 'poison' }],
  ['69', { name: 'ARGUMENT_OUT_OF_BOUND', failure: 'poison' }],
  ['70', { name: 'CANNOT_CONVERT_TYPE', failure: 'poison' }],
  ['72', { name: 'CANNOT_PARSE_NUMBER', failure: 'poison' }],
  ['117', { name: 'INCORRECT_DATA', failure: 'poison' }],
  ['131', { name: 'TOO_LARGE_STRING_SIZE', failure: 'poison' }],
  ['349', { name: 'CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN', failure: 'poison' }],
  ['376', { name: 'CANNOT_PARSE_UUID', failure: 'poison' }],
  ['561', { name: 'ZSTD_DECODER_FAILED', failure: 'poison' }],
  // The size.
  ['241', { name: 'MEMORY_LIMIT_EXCEEDED', failure: 'too_big' }],
  // The state of the server. Some of these need an operator to fix them while the rows wait.
  ['60', { name: 'UNKNOWN_TABLE', failure: 'transient' }],
  ['81', { name: 'UNKNOWN_DATABASE', failure: 'transient' }],
  ['159', { name: 'TIMEOUT_EXCEEDED', failure: 'transient' }],
  ['164', { name: 'READONLY', failure: 'transient' }],
  ['202', { name: 'TOO_MANY_SIMULTANEOUS_QUERIES', failure: 'transient' }],
  ['209', { name: 'SOCKET_TIMEOUT', failure: 'transient' }],
  ['210', { name: 'NETWORK_ERROR', failure: 'transient' }],
  ['218', { name: 'TABLE_IS_DROPPED', failure: 'transient' }],
  ['225', { name: 'NO_ZOOKEEPER', failure: 'transient' }],
  ['235', { name: 'DUPLICATE_DATA_PART', failure: 'transient' }],
  ['236', { name: 'ABORTED', failure: 'transient' }],
  ['242', { name: 'TABLE_IS_READ_ONLY', failure: 'transient' }],
  ['243', { name: 'NOT_ENOUGH_SPACE', failure: 'transient' }],
  ['244', { name: 'UNEXPECTED_ZOOKEEPER_ERROR', failure: 'transient' }],
  ['252', { name: 'TOO_MANY_PARTS', failure: 'transient' }],
  ['254', { name: 'NO_ACTIVE_REPLICAS', failure: 'transient' }],
  // Fewer replicas are available than a quorum needs, or an earlier insert still waits for its quorum.
  ['285', { name: 'TOO_FEW_LIVE_REPLICAS', failure: 'transient' }],
  ['286', { name: 'UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE', failure: 'transient' }],
  ['319', { name: 'UNKNOWN_STATUS_OF_INSERT', failure: 'transient' }],
  ['394', { name: 'QUERY_WAS_CANCELLED', failure: 'transient' }],
  ['439', { name: 'CANNOT_SCHEDULE_TASK', failure: 'transient' }],
  // Some rows have expired by ClickHouse's clock (migrations/0004-expiry.sql). The next attempt looks up which rows are to be inserted:
  // it skips those that have expired by Redis' clock as well. The others wait until the clock of ClickHouse is right.
  ['469', { name: 'VIOLATED_CONSTRAINT', failure: 'transient' }],
  ['497', { name: 'ACCESS_DENIED', failure: 'transient' }],
  ['516', { name: 'AUTHENTICATION_FAILED', failure: 'transient' }],
  ['999', { name: 'KEEPER_EXCEPTION', failure: 'transient' }],
])

export interface ClassifiedError {
  readonly failure: InsertFailure
  /** ClickHouse's name of the error, or the name of the error's class. */
  readonly code: string
  /** Whether this is a ClickHouse error with a code that is not listed. */
  readonly isUnknown: boolean
}

export function classifyInsertError(error: unknown): ClassifiedError {
  if (!(error instanceof ClickHouseError)) {
    return { failure: 'transient', code: error instanceof Error ? error.name : 'unknown', isUnknown: false }
  }
  const entry = codes.get(error.code)
  if (entry === undefined) return { failure: 'transient', code: error.type ?? error.code, isUnknown: true }
  return { failure: entry.failure, code: entry.name, isUnknown: false }
}

/** Describes an error for a log. Of a ClickHouse error only the code and the name, since its message may quote rows. */
export function describeError(error: unknown): string {
  if (error instanceof ClickHouseError) return `ClickHouse ${error.code} ${error.type ?? ''}`.trim()
  return error instanceof Error ? `${error.name}: ${error.message.slice(0, 200)}` : 'unknown'
}
