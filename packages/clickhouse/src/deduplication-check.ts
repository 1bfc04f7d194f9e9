import { randomUUID } from 'node:crypto'
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client'
import { nativeString } from '@sluice/rows'
import { insertStream, lookUp, queryIds, type QueryWatcher } from './query-watch.ts'

/** ClickHouse has stored rows although it remembers their token. Transient: nothing is inserted until it ignores such rows. */
export class DeduplicationError extends Error {
  override name = 'DeduplicationError'
}

/** The table of migrations/0008-deduplication-checks.sql. */
const TABLE = 'deduplication_checks'

/**
 * Tries what exactly-once needs of ClickHouse: an insert is ignored if its token was used, by the same block, by a row of text that consumed
 * the token, or by a larger block. It depends on the version of the server and on its settings.
 *
 * @param settings those of the inserts that rely on it
 * @throws DeduplicationError, and errors for `classifyInsertError`
 */
export async function checkDeduplication(
  client: ClickHouseClient,
  watch: QueryWatcher,
  settings: ClickHouseSettings,
): Promise<void> {
  const [retried, consumed] = [randomUUID(), randomUUID()]
  const insert = async (format: 'Native' | 'TabSeparated', body: Buffer, token: string): Promise<void> => {
    const params = {
      query: `INSERT INTO ${TABLE} (token) FORMAT ${format}`,
      clickhouse_settings: { ...settings, insert_deduplication_token: token },
    }
    await insertStream(client, watch, queryIds.deduplicationCheck(randomUUID()), params, () => [body])
  }
  await insert('Native', twice(retried), retried)
  await insert('Native', twice(retried), retried)
  await insert('TabSeparated', Buffer.from(`${retried}\n`), retried)
  await insert('TabSeparated', Buffer.from(`${consumed}\n`), consumed)
  await insert('Native', twice(consumed), consumed)
  const [row] = await lookUp<{ rows: number }>(client, watch, {
    query: `SELECT toUInt32(count()) AS rows FROM ${TABLE} WHERE token IN ({retried: String}, {consumed: String})`,
    query_params: { retried, consumed },
  })
  // On a cluster, the lookup may reach a replica that lags, and find fewer.
  if ((row?.rows ?? 0) > 3)
    throw new DeduplicationError('ClickHouse stores rows whose token was used (docs/exactly-once.md)')
}

/** A block in the format Native: one column, and two rows with a token. */
function twice(token: string): Buffer {
  return Buffer.from(`\u0001\u0002${['token', 'String', token, token].map(nativeString).join('')}`)
}
