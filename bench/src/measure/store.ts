import { setTimeout as delay } from 'node:timers/promises'
import { connectClickHouse, type ClickHouseAccess, type ClickHouseClient } from '@sluice/runtime'
import { logsTable } from '@sluice/schema'

const QUERY_DEADLINE_MS = 30_000
/** A count costs ClickHouse about a millisecond of CPU time, so that this is 1 % of a core. */
const COUNT_POLL_MS = 100

/** Rows were not all there in time. */
export class NotDrainedError extends Error {
  override name = 'NotDrainedError'
}

/** Where a system stores its rows, as the benchmark looks at it. Every system's table has the same name. */
export class Store {
  readonly #client: ClickHouseClient

  constructor(access: ClickHouseAccess) {
    this.#client = connectClickHouse(access, { requestTimeoutMs: QUERY_DEADLINE_MS, connectionsMax: 4 })
  }

  /** How many rows there are. ClickHouse knows it without reading them. */
  async count(): Promise<number> {
    const [row] = await this.select<{ count: string }>(`SELECT count() AS count FROM ${logsTable}`)
    return Number(row?.count ?? 0)
  }

  /** Empties the table, so that each measurement starts from the same state and without merges of an earlier one. */
  async clear(): Promise<void> {
    await this.#client.command({ query: `TRUNCATE TABLE ${logsTable}` })
  }

  async select<Row>(query: string): Promise<Row[]> {
    const result = await this.#client.query({ query, format: 'JSONEachRow' })
    return result.json<Row>()
  }

  /**
   * Waits until so many rows are there.
   *
   * @returns how many there are then
   * @throws NotDrainedError after the deadline
   */
  async untilCount(rows: number, options: { deadlineMs: number; signal: AbortSignal }): Promise<number> {
    const endMs = performance.now() + options.deadlineMs
    for (;;) {
      const count = await this.count()
      if (count >= rows) return count
      if (performance.now() >= endMs) {
        throw new NotDrainedError(`${rows - count} of ${rows} entries were not stored in time`)
      }
      await delay(COUNT_POLL_MS, undefined, { signal: options.signal })
    }
  }

  async close(): Promise<void> {
    await this.#client.close()
  }
}
