import type { ClickHouseClient } from '@clickhouse/client'
import { lookUp, type QueryWatcher } from './query-watch.ts'

/** The table of migrations/0006-installations.sql: the ids of installations. */
export class Installations {
  readonly #client: ClickHouseClient
  readonly #watch: QueryWatcher

  constructor(client: ClickHouseClient, watch: QueryWatcher) {
    this.#client = client
    this.#watch = watch
  }

  /** The id of the installation with a prefix. Undefined if it has none yet. */
  async find(prefix: string): Promise<string | undefined> {
    const [row] = await lookUp<{ id: string }>(this.#client, this.#watch, {
      query: 'SELECT id FROM installations WHERE prefix = {prefix: String} ORDER BY created_at LIMIT 1',
      query_params: { prefix },
    })
    return row?.id
  }

  async add(prefix: string, id: string): Promise<void> {
    await this.#client.insert({ table: 'installations', values: [{ prefix, id }], format: 'JSONEachRow' })
  }
}
