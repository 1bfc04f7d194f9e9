import type { ClickHouseClient } from '@sluice/runtime'
import { logsTable } from '@sluice/schema'
import { Readable } from 'node:stream'
import { blockBytesMin, blockRowsMin } from './limits.ts'

/** Sends rows to ClickHouse as they are: nobody between the API and ClickHouse parses them. */
export class Inserter {
  readonly #client: ClickHouseClient

  constructor(client: ClickHouseClient) {
    this.#client = client
  }

  /**
   * Inserts zstd frames of JSON rows, one after another, as one insert. Resolves once ClickHouse has confirmed it.
   *
   * @param token an insert with a token that ClickHouse has seen adds nothing
   * @throws what `classifyInsertError` tells apart
   */
  async insert(frames: readonly Buffer[], token: string): Promise<void> {
    const { stream } = await this.#client.exec({
      query: `INSERT INTO ${logsTable} FORMAT JSONEachRow`,
      values: Readable.from(frames, { objectMode: false }),
      http_headers: { 'Content-Encoding': 'zstd' },
      clickhouse_settings: {
        // On by default since 26.3; it would answer for a buffer, not for a part, and costs more CPU a row.
        async_insert: 0,
        insert_deduplicate: 1,
        insert_deduplication_token: token,
        // One block per partition, whatever the size: a token covers what is inserted as one.
        min_insert_block_size_rows: String(blockRowsMin),
        min_insert_block_size_bytes: String(blockBytesMin),
        // Batches mix projects, and so days of expiry; their number is bounded by the allowed retentions.
        max_partitions_per_insert_block: '0',
        // `{"a.b":1,"a":{"b":2}}` names one path twice. The exact text is kept beside it.
        type_json_skip_duplicated_paths: true,
        // The answer comes when all is done, so that an error cannot hide behind a 200.
        wait_end_of_query: 1,
      },
    })
    // An insert answers with nothing; reading it to its end gives the connection back.
    stream.resume()
  }
}
