import { rowColumns } from '@sluice/rows'

/** The table of migrations/0001-logs.sql. */
export const logsTable = 'logs'
/** The table of migrations/0002-dead-letters.sql. */
export const deadLettersTable = 'dead_letters'

/** Inserts rows in the form that the scanner makes. */
export const logsInsertQuery = `INSERT INTO ${logsTable} (${rowColumns.join(', ')}) FORMAT TabSeparated`

/** Inserts rows in the form that `insertBody` makes. */
export const logsInsertBlockQuery = `INSERT INTO ${logsTable} (${rowColumns.join(', ')}) FORMAT Native`

/** Inserts rows in the form that `rowAsJson` makes. */
export const logsInsertJsonQuery = `INSERT INTO ${logsTable} FORMAT JSONEachRow`

/** The ClickHouse settings of every insert of rows. */
export const logsInsertSettings = {
  // On by default since 26.3. ClickHouse would acknowledge rows in a buffer before they are a part, and use more CPU per row.
  async_insert: 0,
  // The table ignores an insert whose token it remembers.
  insert_deduplicate: 1,
  // Accepts `2026-11-20T22:43:01.123Z`, and the form that `parseTimestamp` makes of other timestamps.
  date_time_input_format: 'best_effort',
  // A batch has rows of many projects, and therefore many days of expiry. The allowed retentions bound the number of days.
  max_partitions_per_insert_block: '0',
  // Reading one insert with several threads costs 10 % more CPU. Several inserts at a time use the cores as well.
  input_format_parallel_parsing: 0,
  // Searches of users pause for it: `LogReader`.
  priority: '1',
  // ClickHouse responds when the insert is complete, so that no error follows a status of 200.
  wait_end_of_query: 1,
} as const

/** Far above the largest batch. */
const BLOCK_ROWS = '100000000'

/**
 * The settings with which an insert is one block per partition, whatever the profile of the user has: a token stands only for inserts with the
 * same number of blocks.
 */
export const insertBlock = {
  max_insert_block_size: BLOCK_ROWS,
  min_insert_block_size_rows: BLOCK_ROWS,
  min_insert_block_size_bytes: String(4 * 1024 ** 3),
} as const

/** Others of this kind. A server that does not know one of them rejects an insert that has it. */
export const insertBlockIfKnown: Readonly<Record<string, string>> = {
  max_insert_block_size_bytes: '0',
  input_format_max_block_size_bytes: '0',
  use_strict_insert_block_limits: '0',
  deduplicate_insert: 'enable',
}
