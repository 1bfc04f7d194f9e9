import { setTimeout as delay } from 'node:timers/promises'
import {
  type ClickHouseAccess,
  type ClickHouseClient,
  connectClickHouse,
  logsTable,
} from '@sluice/clickhouse'

const QUERY_TIMEOUT_MS = 30_000
/** A count costs ClickHouse about a millisecond of CPU time, so polling takes 1 % of a core. */
const COUNT_POLL_MS = 100

/** The table in which a system stores its rows. It has the same name in every system. */
export class Store {
  readonly #client: ClickHouseClient

  constructor(access: ClickHouseAccess) {
    this.#client = connectClickHouse(access, { requestTimeoutMs: QUERY_TIMEOUT_MS, connectionsMax: 4 })
  }

  /** The number of rows. ClickHouse knows it without reading them. */
  async count(): Promise<number> {
    const [row] = await this.select<{ count: string }>(`SELECT count() AS count FROM ${logsTable}`)
    return Number(row?.count ?? 0)
  }

  /** Empties the table, so that each measurement starts from the same state, without merges of an earlier one. */
  async clear(): Promise<void> {
    await this.#client.command({ query: `TRUNCATE TABLE ${logsTable}` })
  }

  async select<Row>(query: string): Promise<Row[]> {
    const result = await this.#client.query({ query, format: 'JSONEachRow' })
    return result.json<Row>()
  }

  /**
   * Waits until the table has at least this many rows.
   *
   * @returns the number of rows at that point
   * @throws after the deadline
   */
  async waitForCount(rows: number, options: { deadlineMs: number; signal: AbortSignal }): Promise<number> {
    const endMs = performance.now() + options.deadlineMs
    for (;;) {
      const count = await this.count()
      if (count >= rows) return count
      if (performance.now() >= endMs) {
        throw new Error(`${rows - count} of ${rows} entries were not stored before the deadline`)
      }
      await delay(COUNT_POLL_MS, undefined, { signal: options.signal })
    }
  }

  async close(): Promise<void> {
    await this.#client.close()
  }
}
