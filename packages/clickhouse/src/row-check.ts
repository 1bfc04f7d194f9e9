import type { ClickHouseClient } from '@clickhouse/client'
import { rowColumns, rowKey } from '@sluice/rows'
import { randomUUID } from 'node:crypto'
import { EXPIRY_CONSTRAINT } from './insert-errors.ts'
import { queryIds, type QueryWatcher, selectRows } from './query-watch.ts'
import { quote } from './sql.ts'
import { logsInsertSettings, logsTable } from './tables.ts'

/** One query contains its rows as a string. ClickHouse parses 3 MB of it in about 50 ms. */
const QUERY_ROWS_BYTES_MAX = 8 * 1024 ** 2

/**
 * Asks ClickHouse which rows of a rejected insert it rejects: those that it cannot parse with the types of the table's columns, and
 * those that violate a constraint. The result is a hint that saves inserts. What is stored or dead-lettered does not depend on it.
 */
export class RowCheck {
  readonly #client: Pick<ClickHouseClient, 'query'>
  readonly #watch: QueryWatcher

  constructor(client: Pick<ClickHouseClient, 'query'>, watch: QueryWatcher) {
    this.#client = client
    this.#watch = watch
  }

  /**
   * @param rows each with its newline
   * @returns the ids of the rows that ClickHouse seems to reject
   * @throws if ClickHouse cannot tell, for example because a constraint throws an exception
   */
  async findSuspects(rows: readonly string[]): Promise<ReadonlySet<string>> {
    const [columns, conditions] = await Promise.all([this.#columns(), this.#conditions()])
    const types = new Map(columns.map(({ name, type }) => [name, type]))
    const structure = rowColumns.map((name) => `${name} ${types.get(name) ?? 'String'}`).join(', ')
    // Constraints may refer to columns that ClickHouse computes. What no constraint refers to is not computed.
    const computed = columns
      .filter(({ name, expression }) => expression !== '' && !rowColumns.some((column) => column === name))
      .map(({ name, expression }) => `(${expression}) AS \`${name}\``)
    const names = computed.length === 0 ? '' : `WITH ${computed.join(', ')}`
    const suspects = new Set(rows.map((row) => rowKey(row).id))
    for (const portion of inPortions(rows)) {
      const accepted = await this.#select<{ id: string }>({
        query: `${names} SELECT id FROM format(TabSeparated, ${quote(structure)}, ${quote(portion)}) WHERE ${conditions}`,
        clickhouse_settings: {
          date_time_input_format: logsInsertSettings.date_time_input_format,
          input_format_allow_errors_num: String(rows.length),
          input_format_allow_errors_ratio: 1,
          max_query_size: String(4 * QUERY_ROWS_BYTES_MAX),
          // The query contains rows, which do not belong in a log of queries.
          log_queries: 0,
        },
      })
      for (const { id } of accepted) suspects.delete(id)
    }
    return suspects
  }

  #columns(): Promise<{ name: string; type: string; expression: string }[]> {
    return this.#select({
      query: `SELECT name, type, default_expression AS expression FROM system.columns
        WHERE database = currentDatabase() AND table = '${logsTable}'`,
    })
  }

  /** An SQL condition that is true for a row that violates no constraint. */
  async #conditions(): Promise<string> {
    const constraints = await this.#select<{ expression: string }>({
      query: `SELECT expression FROM system.constraints WHERE database = currentDatabase() AND table = '${logsTable}'
        AND type = 'CHECK' AND name != '${EXPIRY_CONSTRAINT}'`,
    })
    return ['true', ...constraints.map(({ expression }) => `(${expression})`)].join(' AND ')
  }

  #select<Row>(parameters: Parameters<typeof selectRows>[3]): Promise<Row[]> {
    return selectRows<Row>(this.#client, this.#watch, queryIds.lookup(randomUUID()), parameters)
  }
}

function* inPortions(rows: readonly string[]): Generator<string> {
  let portion: string[] = []
  let bytes = 0
  for (const row of rows) {
    portion.push(row)
    bytes += Buffer.byteLength(row)
    if (bytes < QUERY_ROWS_BYTES_MAX) continue
    yield portion.join('')
    portion = []
    bytes = 0
  }
  if (portion.length > 0) yield portion.join('')
}
