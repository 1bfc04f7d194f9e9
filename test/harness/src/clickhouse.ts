import { type ClickHouseAccess, type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'

/** Counting a million rows, or reading all entries of a long run, takes a second. */
const QUERY_DEADLINE_MS = 60_000

export async function withClickHouse<T>(
  access: ClickHouseAccess,
  run: (client: ClickHouseClient) => Promise<T>,
): Promise<T> {
  const client = connectClickHouse(access, { requestTimeoutMs: QUERY_DEADLINE_MS, connectionsMax: 1 })
  try {
    return await run(client)
  } finally {
    await client.close()
  }
}

export function select<Row>(
  access: ClickHouseAccess,
  query: string,
  parameters: Readonly<Record<string, unknown>> = {},
): Promise<Row[]> {
  return withClickHouse(access, async (client) => {
    const result = await client.query({ query, query_params: { ...parameters }, format: 'JSONEachRow' })
    return result.json<Row>()
  })
}

export async function command(access: ClickHouseAccess, query: string): Promise<void> {
  await withClickHouse(access, (client) => client.command({ query }))
}
