import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client'
import { rowColumns, rowKey } from '@sluice/rows'
import { EXPIRY_CONSTRAINT, VIOLATED_CONSTRAINT } from './insert-errors.ts'
import { lookUp, type QueryWatcher } from './query-watch.ts'
import { inPortions, quote } from './sql.ts'
import { logsInsertSettings, logsTable } from './tables.ts'

/** One query contains its rows as a string. ClickHouse parses 3 MB of it in about 50 ms. */
const PORTION_BYTES_MAX = 8 * 1024 ** 2
const PORTION_ROWS_MAX = 20_000

/**
 * The ids of rows that ClickHouse seems to reject, and the constraint that each violates, as the error of such a row. Without one, the row
 * cannot be parsed.
 */
export type Suspects = ReadonlyMap<string, ClickHouseError | undefined>

export type RowCheck = ReturnType<typeof rowChecker>

/**
 * Asks ClickHouse which rows of a rejected insert it rejects: those that it cannot parse with the types of the table's columns, and
 * those that violate a constraint.
 */
export function rowChecker(client: Pick<ClickHouseClient, 'query'>, watch: QueryWatcher) {
  function select<Row>(query: string): Promise<Row[]> {
    return lookUp<Row>(client, watch, {
      query,
      clickhouse_settings: {
        date_time_input_format: logsInsertSettings.date_time_input_format,
        input_format_allow_errors_num: String(PORTION_ROWS_MAX),
        input_format_allow_errors_ratio: 1,
        max_query_size: String(4 * PORTION_BYTES_MAX),
        // The query contains rows, which do not belong in a log of queries.
        log_queries: 0,
      },
    })
  }
  return {
    /**
     * @param rows each with its newline
     * @throws if ClickHouse cannot tell, for example because a constraint throws an exception
     */
    async findSuspects(rows: readonly string[]): Promise<Suspects> {
      const [columns, constraints] = await Promise.all([
        select<Column>(columnsQuery),
        select<Constraint>(constraintsQuery),
      ])
      const errors = constraints.map(violation)
      const conditions = constraints.map(({ expression }, i) => `ifNull((${expression}), 0) = 0, ${i + 1}`)
      const violated = conditions.length === 0 ? '0' : `multiIf(${conditions.join(', ')}, 0)`
      const suspects = new Map<string, ClickHouseError | undefined>()
      for (const portion of inPortions(rows, PORTION_ROWS_MAX, PORTION_BYTES_MAX, (row) =>
        Buffer.byteLength(row),
      )) {
        const from = fromRows(columns, portion)
        const [{ parsed, violations } = { parsed: 0, violations: [] }] = await select<{
          parsed: number
          violations: readonly (readonly [id: string, constraint: number])[]
        }>(
          `${computed(columns)} SELECT toUInt32(count()) AS parsed, groupArrayIf((id, toUInt8(${violated})), ${violated} > 0) AS violations ${from}`,
        )
        for (const [id, number] of violations) suspects.set(id, errors[number - 1])
        if (parsed === portion.length) continue
        const unparsed = new Set(portion.map((row) => rowKey(row).id))
        for (const { id } of await select<{ id: string }>(`SELECT id ${from}`)) unparsed.delete(id)
        for (const id of unparsed) suspects.set(id, undefined)
      }
      return suspects
    },
  }
}

const ofLogs = `WHERE database = currentDatabase() AND table = '${logsTable}'`
const columnsQuery = `SELECT name, type, default_expression AS expression FROM system.columns ${ofLogs}`
const constraintsQuery = `SELECT name, expression FROM system.constraints ${ofLogs} AND type = 'CHECK' AND name != '${EXPIRY_CONSTRAINT}'`

interface Constraint {
  readonly name: string
  readonly expression: string
}

/** The expression is empty if ClickHouse does not compute it. */
interface Column extends Constraint {
  readonly type: string
}

function fromRows(columns: readonly Column[], rows: readonly string[]): string {
  const types = new Map(columns.map(({ name, type }) => [name, type]))
  const structure = rowColumns.map((name) => `${name} ${types.get(name) ?? 'String'}`).join(', ')
  return `FROM format(TabSeparated, ${quote(structure)}, ${quote(rows.join(''))})`
}

/** Constraints may refer to columns that ClickHouse computes. What no constraint refers to is not computed. */
function computed(columns: readonly Column[]): string {
  const expressions = columns
    .filter(({ name, expression }) => expression !== '' && !rowColumns.some((column) => column === name))
    .map(({ name, expression }) => `(${expression}) AS \`${name}\``)
  return expressions.length === 0 ? '' : `WITH ${expressions.join(', ')}`
}

/** The error with which ClickHouse rejects a row that violates a constraint. */
function violation({ name, expression }: Constraint): ClickHouseError {
  const message = `Constraint \`${name}\` for table ${logsTable} is violated. Expression: (${expression})`
  return new ClickHouseError({ message, code: VIOLATED_CONSTRAINT, type: 'VIOLATED_CONSTRAINT' })
}
