export { ClickHouseClock, type ClickHouseClockOptions, ClockSkewError } from './clickhouse-clock.ts'
export {
  type ClickHouseAccess,
  clickhouseAccessFrom,
  type ClickHouseClient,
  clickhouseSettings,
  connectClickHouse,
  quorumSettings,
} from './client.ts'
export { type DeadLetter, DeadLetters } from './dead-letters.ts'
export { DeadLetterStore, type RetryOutcome, type StoredDeadLetter } from './dead-letter-store.ts'
export { ClickHouseError, classifyInsertError, describeError, type InsertFailure } from './insert-errors.ts'
export {
  InsertOnce,
  type InsertOnceOptions,
  type InsertResult,
  REPLACEMENTS_MAX,
  StillRunningError,
} from './insert-once.ts'
export { Installations } from './installations.ts'
export {
  migrate,
  type Migration,
  MigrationError,
  migrationsFolder,
  readMigrations,
  replicatedStatement,
} from './migrate.ts'
export { queryIds, QueryWatch, type QueryWatcher, watchLimits } from './query-watch.ts'
export { RowCheck } from './row-check.ts'
export { FrameInserter, RowInserter, type RowInserterOptions } from './row-inserter.ts'
export { StoredRows } from './stored-rows.ts'
export {
  deadLettersTable,
  insertBlock,
  logsInsertJsonQuery,
  logsInsertQuery,
  logsInsertSettings,
  logsTable,
} from './tables.ts'
