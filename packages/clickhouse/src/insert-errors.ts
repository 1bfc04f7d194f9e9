import { ClickHouseError } from '@clickhouse/client'

export { ClickHouseError } from '@clickhouse/client'

/**
 * How to handle a failed insert:
 * - `transient`: the error will pass; the same insert is retried forever
 * - `too_big`: the insert may succeed with fewer rows; the batch is split
 * - `poison`: ClickHouse rejects the rows themselves; the batch is split down to the invalid rows, which are dead-lettered
 * - `unknown`: ClickHouse's code is not listed, and it may have to be. The rows may be the cause, or the server
 */
export type InsertFailure = 'transient' | 'too_big' | 'poison' | 'unknown'

/** ClickHouse's error codes and their names (its src/Common/ErrorCodes.cpp), by what they mean for an insert. */
const codes: Readonly<Record<Exclude<InsertFailure, 'unknown'>, string>> = {
  // The rows themselves. Columns, constraints and materialized views that an operator adds have their own rules for rows.
  poison: `
    6 CANNOT_PARSE_TEXT, 25 CANNOT_PARSE_ESCAPE_SEQUENCE, 26 CANNOT_PARSE_QUOTED_STRING,
    27 CANNOT_PARSE_INPUT_ASSERTION_FAILED, 32 ATTEMPT_TO_READ_AFTER_EOF, 33 CANNOT_READ_ALL_DATA,
    38 CANNOT_PARSE_DATE, 41 CANNOT_PARSE_DATETIME, 53 TYPE_MISMATCH, 69 ARGUMENT_OUT_OF_BOUND,
    70 CANNOT_CONVERT_TYPE, 72 CANNOT_PARSE_NUMBER, 117 INCORRECT_DATA, 128 TOO_LARGE_ARRAY_SIZE,
    130 CANNOT_READ_ARRAY_FROM_TEXT, 131 TOO_LARGE_STRING_SIZE, 153 ILLEGAL_DIVISION,
    190 SIZES_OF_ARRAYS_DONT_MATCH, 321 VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE,
    349 CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN, 376 CANNOT_PARSE_UUID, 395 FUNCTION_THROW_IF_VALUE_IS_NON_ZERO,
    407 DECIMAL_OVERFLOW, 467 CANNOT_PARSE_BOOL, 469 VIOLATED_CONSTRAINT, 561 ZSTD_DECODER_FAILED,
    563 CANNOT_READ_MAP_FROM_TEXT, 632 UNEXPECTED_DATA_AFTER_PARSED_VALUE, 675 CANNOT_PARSE_IPV4,
    676 CANNOT_PARSE_IPV6, 691 UNKNOWN_ELEMENT_OF_ENUM`,
  too_big: '158 TOO_MANY_ROWS, 173 CANNOT_ALLOCATE_MEMORY, 241 MEMORY_LIMIT_EXCEEDED, 307 TOO_MANY_BYTES',
  /**
   * First, an operator must change the tables, the settings or the user. Then an earlier attempt is still running (216). Then the state of the
   * server, and of a cluster: fewer replicas are available than a quorum needs (285), or an earlier insert waits for its quorum (286).
   */
  transient: `
    8 THERE_IS_NO_COLUMN, 10 NOT_FOUND_COLUMN_IN_BLOCK, 16 NO_SUCH_COLUMN_IN_TABLE,
    20 NUMBER_OF_COLUMNS_DOESNT_MATCH, 43 ILLEGAL_TYPE_OF_ARGUMENT, 46 UNKNOWN_FUNCTION, 47 UNKNOWN_IDENTIFIER,
    60 UNKNOWN_TABLE, 62 SYNTAX_ERROR, 81 UNKNOWN_DATABASE, 115 UNKNOWN_SETTING, 164 READONLY,
    192 UNKNOWN_USER, 193 WRONG_PASSWORD, 194 REQUIRED_PASSWORD, 201 QUOTA_EXCEEDED,
    291 DATABASE_ACCESS_DENIED, 452 SETTING_CONSTRAINT_VIOLATION, 497 ACCESS_DENIED, 511 UNKNOWN_ROLE,
    516 AUTHENTICATION_FAILED,
    216 QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING,
    74 CANNOT_READ_FROM_FILE_DESCRIPTOR, 75 CANNOT_WRITE_TO_FILE_DESCRIPTOR, 76 CANNOT_OPEN_FILE,
    95 CANNOT_READ_FROM_SOCKET, 96 CANNOT_WRITE_TO_SOCKET, 159 TIMEOUT_EXCEEDED, 172 CANNOT_CREATE_DIRECTORY,
    202 TOO_MANY_SIMULTANEOUS_QUERIES, 203 NO_FREE_CONNECTION, 204 CANNOT_FSYNC, 209 SOCKET_TIMEOUT,
    210 NETWORK_ERROR, 218 TABLE_IS_DROPPED, 236 ABORTED, 242 TABLE_IS_READ_ONLY, 243 NOT_ENOUGH_SPACE,
    252 TOO_MANY_PARTS, 341 UNFINISHED, 394 QUERY_WAS_CANCELLED, 439 CANNOT_SCHEDULE_TASK,
    473 DEADLOCK_AVOIDED, 499 S3_ERROR, 677 THREAD_WAS_CANCELED, 692 TOO_MANY_MUTATIONS,
    700 USER_SESSION_LIMIT_EXCEEDED, 733 TABLE_IS_BEING_RESTARTED, 735 QUERY_WAS_CANCELLED_BY_CLIENT,
    745 SERVER_OVERLOADED, 749 TCP_CONNECTION_LIMIT_REACHED, 762 HTTP_CONNECTION_LIMIT_REACHED,
    763 SESSION_REFUSED, 774 TABLE_IS_PERMANENTLY_READ_ONLY, 777 MEMORY_RESERVATION_KILLED,
    778 MEMORY_RESERVATION_FAILED,
    225 NO_ZOOKEEPER, 235 DUPLICATE_DATA_PART, 244 UNEXPECTED_ZOOKEEPER_ERROR, 254 NO_ACTIVE_REPLICAS,
    279 ALL_CONNECTION_TRIES_FAILED, 285 TOO_FEW_LIVE_REPLICAS, 286 UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE,
    319 UNKNOWN_STATUS_OF_INSERT, 416 REPLICA_STATUS_CHANGED, 999 KEEPER_EXCEPTION`,
}

/** ClickHouse has every token that may be used for the rows, and lookups do not find them. Other tokens are needed: those of parts. */
export class TokenWithoutRowsError extends Error {
  override name = 'TokenWithoutRowsError'

  constructor(token: string) {
    super(`rows of ${token} are not found`)
  }
}

export interface ClassifiedError {
  readonly failure: InsertFailure
  /** ClickHouse's name of the error, or the name of the error's class. */
  readonly code: string
}

/** Decides what a failed insert means for its rows. An error that is not ClickHouse's is transient: the token makes a retry safe. */
export function classifyInsertError(error: unknown): ClassifiedError {
  if (error instanceof TokenWithoutRowsError) return { failure: 'too_big', code: error.name }
  if (!(error instanceof ClickHouseError))
    return { failure: 'transient', code: error instanceof Error ? error.name : 'unknown' }
  if (error.code === VIOLATED_CONSTRAINT && error.message.includes(`\`${EXPIRY_CONSTRAINT}\``))
    return { failure: 'transient', code: 'VIOLATED_CONSTRAINT' }
  return listedCodes.get(error.code) ?? { failure: 'unknown', code: error.type ?? error.code }
}

export const VIOLATED_CONSTRAINT = '469'
/** ClickHouse's code while an earlier attempt runs: nothing was done. ClickHouse is slow, and works. */
export const STILL_RUNNING = '216'
/**
 * The constraint of migrations/0004-expiry.sql: some rows have expired by ClickHouse's clock. The next attempt looks up which rows are to
 * be inserted: it skips those that have expired by Redis' clock as well. The others wait until the clock of ClickHouse is right.
 */
export const EXPIRY_CONSTRAINT = 'not_expired'

/** What each code means, by its number. */
export const listedCodes: ReadonlyMap<string, ClassifiedError> = new Map(
  (['poison', 'too_big', 'transient'] as const).flatMap((failure) =>
    Array.from(
      codes[failure].matchAll(/(\d+) (\w+)/g),
      ([, number = '', code = '']) => [number, { failure, code }] as const,
    ),
  ),
)

const NOT_ENOUGH_SPACE = '243'

/** ClickHouse has reserved no space, or the system has none for what it writes (ENOSPC). */
const isDiskFull = (error: unknown): boolean =>
  error instanceof ClickHouseError &&
  (error.code === NOT_ENOUGH_SPACE || /\berrno: 28, strerror:/.test(error.message))

/** Describes an error for a log. Of a ClickHouse error only the code and the name, since its message may quote rows. */
export function describeError(error: unknown): string {
  if (isDiskFull(error)) return 'the disk of ClickHouse is full (NOT_ENOUGH_SPACE)'
  if (error instanceof ClickHouseError) return `ClickHouse ${error.code} ${error.type ?? ''}`.trim()
  return error instanceof Error ? `${error.name}: ${error.message.slice(0, 200)}` : 'unknown'
}
