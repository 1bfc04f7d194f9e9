import type { ClickHouseClient } from '@clickhouse/client'
import { insertStream } from './insert-stream.ts'
import { queryIds } from './query-ids.ts'
import { type QueryWatcher, unwatched } from './query-watch.ts'
import { insertBlock, logsInsertQuery, logsInsertSettings } from './tables.ts'

/** Bytes of the body that are sent as one piece. An upload of this size makes progress in seconds, over a slow network too. */
const PIECE_BYTES = 64 * 1024

/** Sends frames of rows to ClickHouse as they are: nothing between the API and ClickHouse parses them. */
export class FrameInserter {
  readonly #client: ClickHouseClient
  readonly #watch: QueryWatcher

  constructor(client: ClickHouseClient, watch: QueryWatcher = unwatched) {
    this.#client = client
    this.#watch = watch
  }

  /**
   * Inserts the rows of several zstd frames as one insert. Resolves when ClickHouse has acknowledged it.
   *
   * @param token ClickHouse ignores the insert if it remembers the token
   * @param queryId ClickHouse rejects the insert while a query with this id is running. By default, one for the token
   * @throws errors for `classifyInsertError`
   */
  async insert(frames: readonly Buffer[], token: string, queryId = queryIds.rows(token)): Promise<void> {
    const params = {
      query: logsInsertQuery,
      http_headers: { 'Content-Encoding': 'zstd' },
      clickhouse_settings: {
        ...logsInsertSettings,
        insert_deduplication_token: token,
        min_insert_block_size_rows: String(insertBlock.rowsMin),
        min_insert_block_size_bytes: String(insertBlock.bytesMin),
      },
    } as const
    await insertStream(this.#client, this.#watch, queryId, params, (onPiece) => piecesOf(frames, onPiece))
  }

  /** Whether ClickHouse certainly runs an insert with this token. */
  async isRunning(token: string): Promise<boolean> {
    return this.#watch.isRunning(queryIds.rows(token))
  }
}

function* piecesOf(frames: readonly Buffer[], onPiece: () => void): Generator<Buffer> {
  for (const frame of frames) {
    for (let from = 0; from < frame.length; from += PIECE_BYTES) {
      onPiece()
      yield frame.subarray(from, from + PIECE_BYTES)
    }
  }
}
