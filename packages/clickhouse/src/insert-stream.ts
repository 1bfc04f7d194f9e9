import type { ClickHouseClient, ExecParams } from '@clickhouse/client'
import { addAbortSignal, Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { QueryWatcher } from './query-watch.ts'

/**
 * Sends a watched insert. Resolves when ClickHouse has acknowledged it.
 *
 * @param pieces the body. `onPiece` may be called when a piece is needed: those before it are sent, which is progress
 * @throws errors for `classifyInsertError`
 */
export async function insertStream(
  client: Pick<ClickHouseClient, 'exec'>,
  watch: QueryWatcher,
  queryId: string,
  params: Pick<ExecParams, 'query' | 'clickhouse_settings' | 'http_headers'>,
  pieces: (onPiece: () => void) => Iterable<Buffer>,
): Promise<void> {
  await watch.run(queryId, async ({ signal, progressed }) => {
    const { stream } = await client.exec({
      ...params,
      values: Readable.from(pieces(progressed), { objectMode: false }),
      query_id: queryId,
      abort_signal: signal,
    })
    // The response of an insert is empty. Its end releases the connection, which may fall silent before: others would wait for it.
    await finished(addAbortSignal(signal, stream).resume())
  })
}
