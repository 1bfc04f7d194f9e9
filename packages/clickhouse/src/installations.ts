import type { ClickHouseClient } from '@clickhouse/client'
import { lookUp, type QueryWatcher } from './query-watch.ts'

/** The table of migrations/0006-installations.sql: the ids of installations, by their prefixes. */
export function installations(client: ClickHouseClient, watch: QueryWatcher, prefix: string) {
  return {
    /** The id of the installation. Undefined if it has none yet. */
    async find(): Promise<string | undefined> {
      const [row] = await lookUp<{ id: string }>(client, watch, {
        query: 'SELECT id FROM installations WHERE prefix = {prefix: String} ORDER BY created_at LIMIT 1',
        query_params: { prefix },
      })
      return row?.id
    },
    async add(id: string): Promise<void> {
      await client.insert({ table: 'installations', values: [{ prefix, id }], format: 'JSONEachRow' })
    },
  }
}
