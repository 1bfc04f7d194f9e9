import type { ClickHouseClient } from '@clickhouse/client'
import { type RowKey, rowKey, rowsOfFrame } from '@sluice/rows'
import { logsTable } from './tables.ts'

/** Rows per query. Their ids are in its text, which ClickHouse limits to 256 KiB. */
const ROWS_PER_QUERY_MAX = 4_000

const UUID = /^[0-9a-f-]{36}$/

/** Looks up which rows ClickHouse already has. */
export class StoredRows {
  readonly #client: Pick<ClickHouseClient, 'query'>

  constructor(client: Pick<ClickHouseClient, 'query'>) {
    this.#client = client
  }

  /** @returns the ids of rows that are stored, and of rows past their retention, which are treated as stored */
  async find(frames: readonly Buffer[]): Promise<ReadonlySet<string>> {
    const stored = new Set<string>()
    const today = await this.#today()
    for (const keys of inPortions(frames)) {
      for (const id of await this.#findSome(keys, today)) stored.add(id)
    }
    return stored
  }

  /** `YYYY-MM-DD` by ClickHouse's clock, since ClickHouse removes expired rows. */
  async #today(): Promise<string> {
    const query = "SELECT toString(toDate(now('UTC'))) AS today"
    const [row] = await (await this.#client.query({ query, format: 'JSONEachRow' })).json<{ today: string }>()
    if (row === undefined) throw new Error('ClickHouse does not report the date')
    return row.today
  }

  async #findSome(keys: readonly RowKey[], today: string): Promise<string[]> {
    const lookedUp = keys.filter(({ id }) => UUID.test(id))
    const expired = lookedUp.filter(({ expiresOn }) => expiresOn <= today).map(({ id }) => id)
    const kept = lookedUp.filter(({ expiresOn }) => expiresOn > today)
    if (kept.length === 0) return expired
    const times = kept.map(({ receivedAt }) => receivedAt).toSorted()
    const result = await this.#client.query({
      // The partitions and the index on received_at leave almost nothing to read.
      query: `SELECT toString(id) AS id FROM ${logsTable}
        WHERE expires_on IN {days: Array(Date)} AND received_at BETWEEN {from: DateTime64(3, 'UTC')} AND {to: DateTime64(3, 'UTC')}
        AND id IN (${kept.map(({ id }) => `'${id}'`).join()})`,
      query_params: {
        days: [...new Set(kept.map(({ expiresOn }) => expiresOn))],
        from: times.at(0),
        to: times.at(-1),
      },
      format: 'JSONEachRow',
    })
    return [...expired, ...(await result.json<{ id: string }>()).map(({ id }) => id)]
  }
}

/** Skips frames that cannot be decompressed. */
function* inPortions(frames: readonly Buffer[]): Generator<RowKey[]> {
  let portion: RowKey[] = []
  for (const frame of frames) {
    for (const row of rowsOfFrame(frame) ?? []) {
      portion.push(rowKey(row))
      if (portion.length < ROWS_PER_QUERY_MAX) continue
      yield portion
      portion = []
    }
  }
  if (portion.length > 0) yield portion
}
