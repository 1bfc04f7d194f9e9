import type { ClickHouseClient } from '@sluice/runtime'
import { logsInsertQuery, logsInsertSettings } from '@sluice/schema'
import { Readable } from 'node:stream'
import { blockBytesMin, blockRowsMin } from './limits.ts'

/** Sends rows to ClickHouse as they are: nobody between the API and ClickHouse parses them. */
export class Inserter {
  readonly #client: ClickHouseClient

  constructor(client: ClickHouseClient) {
    this.#client = client
  }

  /**
   * Inserts zstd frames of rows, one after another, as one insert. Resolves once ClickHouse has confirmed it.
   *
   * @param token an insert with a token that ClickHouse has seen adds nothing
   * @throws what `classifyInsertError` tells apart
   */
  async insert(frames: readonly Buffer[], token: string): Promise<void> {
    const { stream } = await this.#client.exec({
      query: logsInsertQuery,
      values: Readable.from(frames, { objectMode: false }),
      http_headers: { 'Content-Encoding': 'zstd' },
      clickhouse_settings: {
        ...logsInsertSettings,
        insert_deduplication_token: token,
        // One block per partition, whatever the size: a token covers what is inserted as one.
        min_insert_block_size_rows: String(blockRowsMin),
        min_insert_block_size_bytes: String(blockBytesMin),
      },
    })
    // An insert answers with nothing; reading it to its end gives the connection back.
    stream.resume()
  }
}
