import type { ClickHouseClient } from '@clickhouse/client'
import { Readable } from 'node:stream'
import { insertBlock, logsInsertQuery, logsInsertSettings } from './tables.ts'

/** Sends frames of rows to ClickHouse as they are: nothing between the API and ClickHouse parses them. */
export class FrameInserter {
  readonly #client: ClickHouseClient

  constructor(client: ClickHouseClient) {
    this.#client = client
  }

  /**
   * Inserts the rows of several zstd frames as one insert. Resolves when ClickHouse has acknowledged it.
   *
   * @param token ClickHouse ignores the insert if it remembers the token
   * @throws errors for `classifyInsertError`
   */
  async insert(frames: readonly Buffer[], token: string): Promise<void> {
    const { stream } = await this.#client.exec({
      query: logsInsertQuery,
      values: Readable.from(frames, { objectMode: false }),
      http_headers: { 'Content-Encoding': 'zstd' },
      clickhouse_settings: {
        ...logsInsertSettings,
        insert_deduplication_token: token,
        min_insert_block_size_rows: String(insertBlock.rowsMin),
        min_insert_block_size_bytes: String(insertBlock.bytesMin),
      },
    })
    // The response of an insert is empty. Reading it to its end releases the connection.
    stream.resume()
  }
}
