import { connectClickHouse } from '@sluice/clickhouse'
import { eventually } from '@sluice/harness'
import type { Installation } from '@sluice/local'

const STORED_WITHIN_MS = 20_000

export interface StoredLog {
  readonly timestamp: string
  readonly level: string
  readonly message: string
  readonly service: string
  readonly environment: string
  readonly stack: string
  readonly metadata_text: string
}

/** The rows of a service, once there are at least this many. */
export async function storedLogs(
  installation: Installation,
  service: string,
  count: number,
): Promise<StoredLog[]> {
  const client = connectClickHouse(installation.clickhouse, { requestTimeoutMs: 5_000, connectionsMax: 1 })
  try {
    return await eventually(STORED_WITHIN_MS, async () => {
      const result = await client.query({
        query: `
          SELECT timestamp, level, message, service, environment, stack, metadata_text FROM logs
          WHERE service = {service: String} ORDER BY timestamp, message`,
        query_params: { service },
        format: 'JSONEachRow',
      })
      const rows = await result.json<StoredLog>()
      if (rows.length < count) throw new Error(`${rows.length} of ${count} rows are stored`)
      return rows
    })
  } finally {
    await client.close()
  }
}
