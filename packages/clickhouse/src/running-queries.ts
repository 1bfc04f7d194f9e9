import type { ClickHouseClient } from '@clickhouse/client'

/** Asks ClickHouse which queries it is running. */
export class RunningQueries {
  readonly #client: Pick<ClickHouseClient, 'query'>
  readonly #isCluster: boolean

  /**
   * @param client makes a new connection for each question: a connection that is open may be silent
   * @param isCluster whether a question may reach another server than the query did
   */
  constructor(client: Pick<ClickHouseClient, 'query'>, { isCluster }: { readonly isCluster: boolean }) {
    this.#client = client
    this.#isCluster = isCluster
  }

  /**
   * Asks whether a query of this user is running.
   *
   * @returns undefined if this cannot be known: on a cluster, another server may run the query
   * @throws if there is no answer, or ClickHouse answers with an error
   */
  async has(queryId: string, signal: AbortSignal): Promise<boolean | undefined> {
    const result = await this.#client.query({
      query: 'SELECT 1 FROM system.processes WHERE query_id = {queryId: String} LIMIT 1',
      query_params: { queryId },
      format: 'JSONEachRow',
      abort_signal: signal,
    })
    const rows = await result.json()
    return this.#isCluster ? undefined : rows.length > 0
  }
}
