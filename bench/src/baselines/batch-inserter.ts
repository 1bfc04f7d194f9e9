import type { ClickHouseClient } from '@sluice/runtime'
import { logsTable } from '@sluice/schema'
import type { Row } from './row.ts'

export const batchLimits = { rowsMax: 1_000, waitMs: 200 } as const

interface Waiting {
  readonly row: Row
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Gathers rows and inserts them together: when there are `rowsMax` of them, or `waitMs` after the first. */
export class BatchInserter {
  readonly #client: ClickHouseClient
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(client: ClickHouseClient) {
    this.#client = client
  }

  /** Resolves when the row is in ClickHouse. */
  insert(row: Row): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, resolve, reject })
      if (this.#waiting.length >= batchLimits.rowsMax) void this.#flush()
      else this.#timer ??= setTimeout(() => void this.#flush(), batchLimits.waitMs)
    })
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const batch = this.#waiting
    this.#waiting = []
    try {
      await this.#client.insert({
        table: logsTable,
        values: batch.map(({ row }) => row),
        format: 'JSONEachRow',
        // The batch is made here, so ClickHouse need not gather.
        clickhouse_settings: { async_insert: 0, date_time_input_format: 'best_effort' },
      })
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}
