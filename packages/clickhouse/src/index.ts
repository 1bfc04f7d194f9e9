export { ClickHouseClock, type ClickHouseClockOptions, ClockSkewError } from './clickhouse-clock.ts'
export {
  type ClickHouseAccess,
  clickhouseAccessFrom,
  type ClickHouseClient,
  connectClickHouse,
  quorumSettings,
} from './client.ts'
export { ClickHouseMonitor } from './clickhouse-monitor.ts'
export { type DeadLetter, DeadLetters } from './dead-letters.ts'
export { DeadLetterStore, type RetryOutcome, type StoredDeadLetter } from './dead-letter-store.ts'
export { FrameInserter } from './frame-inserter.ts'
export { ClickHouseError, classifyInsertError, describeError, type InsertFailure } from './insert-errors.ts'
export {
  InsertOnce,
  type InsertOnceOptions,
  type InsertResult,
  REPLACEMENTS_MAX,
  StillRunningError,
} from './insert-once.ts'
export { migrate, type Migration, MigrationError, migrationsFolder, readMigrations } from './migrate.ts'
export { queryIds } from './query-ids.ts'
export { QueryWatch, type QueryWatcher, watchLimits } from './query-watch.ts'
export { replicatedStatement } from './replicated-sql.ts'
export { RowInserter, type RowInserterOptions } from './row-inserter.ts'
export { RunningQueries } from './running-queries.ts'
export { clickhouseSettings } from './settings.ts'
export { StoredRows } from './stored-rows.ts'
export {
  deadLettersTable,
  insertBlock,
  logsInsertJsonQuery,
  logsInsertQuery,
  logsInsertSettings,
  logsTable,
} from './tables.ts'
