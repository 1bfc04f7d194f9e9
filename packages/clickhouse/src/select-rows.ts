import type { ClickHouseClient, QueryParams } from '@clickhouse/client'
import type { QueryWatcher } from './query-watch.ts'

/**
 * Sends a watched query, and reads its rows.
 *
 * @throws the errors of the client, and LostQueryError
 */
export async function selectRows<Row>(
  client: Pick<ClickHouseClient, 'query'>,
  watch: QueryWatcher,
  queryId: string,
  parameters: Pick<QueryParams, 'query' | 'query_params' | 'clickhouse_settings'>,
): Promise<Row[]> {
  return watch.run(queryId, async ({ signal }) => {
    const result = await client.query({
      ...parameters,
      format: 'JSONEachRow',
      query_id: queryId,
      abort_signal: signal,
    })
    // The client heeds the signal until the answer begins. A connection may fall silent after that.
    signal.addEventListener('abort', () => result.close(), { once: true })
    return result.json<Row>()
  })
}
