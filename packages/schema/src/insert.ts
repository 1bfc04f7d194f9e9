import { logsTable } from './names.ts'
import { rowColumns } from './rows.ts'

/** Inserts rows as `shapeRow` makes them. */
export const logsInsertQuery = `INSERT INTO ${logsTable} (${rowColumns.join(', ')}) FORMAT TabSeparated`

/** Inserts rows as `rowAsJson` shows them. */
export const logsInsertJsonQuery = `INSERT INTO ${logsTable} FORMAT JSONEachRow`

/** The settings of ClickHouse that every insert of rows needs. */
export const logsInsertSettings = {
  // On by default since 26.3; it would answer for a buffer, not for a part, and costs more CPU a row.
  async_insert: 0,
  // An insert with a token that the table remembers adds nothing.
  insert_deduplicate: 1,
  // Reads `2026-11-20T22:43:01.123Z`, and what `parseTimestamp` makes of other forms.
  date_time_input_format: 'best_effort',
  // Batches mix projects, and so days of expiry; their number is bounded by the allowed retentions.
  max_partitions_per_insert_block: '0',
  // Reading one insert with several threads costs a tenth more CPU; several inserts at once use the cores as well.
  input_format_parallel_parsing: 0,
  // The answer comes when all is done, so that an error cannot hide behind a 200.
  wait_end_of_query: 1,
} as const
