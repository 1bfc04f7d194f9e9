import type { ClickHouseClient } from '@clickhouse/client'
import { lookUp, type QueryWatcher } from './query-watch.ts'

/** The table of migrations/0006-installations.sql: the ids of installations, by their prefixes. */
export class Installations {
  readonly #client: ClickHouseClient
  readonly #watch: QueryWatcher
  readonly #prefix: string

  constructor(client: ClickHouseClient, watch: QueryWatcher, prefix: string) {
    this.#client = client
    this.#watch = watch
    this.#prefix = prefix
  }

  /** The id of the installation. Undefined if it has none yet. */
  async find(): Promise<string | undefined> {
    const [row] = await lookUp<{ id: string }>(this.#client, this.#watch, {
      query: 'SELECT id FROM installations WHERE prefix = {prefix: String} ORDER BY created_at LIMIT 1',
      query_params: { prefix: this.#prefix },
    })
    return row?.id
  }

  async add(id: string): Promise<void> {
    const values = [{ prefix: this.#prefix, id }]
    await this.#client.insert({ table: 'installations', values, format: 'JSONEachRow' })
  }
}
