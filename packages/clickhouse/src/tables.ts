import { rowColumns } from '@sluice/rows'

/** The table of migrations/0001-logs.sql. */
export const logsTable = 'logs'
/** The table of migrations/0002-dead-letters.sql. */
export const deadLettersTable = 'dead_letters'

/** Inserts rows in the form that `shapeRow` makes. */
export const logsInsertQuery = `INSERT INTO ${logsTable} (${rowColumns.join(', ')}) FORMAT TabSeparated`

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
  // ClickHouse responds when the insert is complete, so that no error follows a status of 200.
  wait_end_of_query: 1,
} as const

/**
 * An insert must be one block per partition, so that ClickHouse applies its token to all rows of it. ClickHouse splits inserts
 * into blocks of at least this size, which is far above the largest batch.
 */
export const insertBlock = { rowsMin: 100_000_000, bytesMin: 4 * 1024 ** 3 } as const
