import type { ClickHouseClient } from '@sluice/runtime'
import { encodeFrame, logsTable, rowColumns, zstdLines } from '@sluice/schema'

/** Rows that are asked for by one query: their ids are in its text, which may have 256 KiB. */
const ROWS_PER_QUERY_MAX = 4_000

const ID = rowColumns.indexOf('id')
const RECEIVED_AT = rowColumns.indexOf('received_at')
const EXPIRES_ON = rowColumns.indexOf('expires_on')
const UUID = /^[0-9a-f-]{36}$/

/** Tells which rows are in ClickHouse already. */
export class StoredRows {
  readonly #client: Pick<ClickHouseClient, 'query'>

  constructor(client: Pick<ClickHouseClient, 'query'>) {
    this.#client = client
  }

  /** @returns the ids of those rows that are, and of those that are to be removed today or were before */
  async find(frames: readonly Buffer[]): Promise<ReadonlySet<string>> {
    const stored = new Set<string>()
    const today = await this.#today()
    for (const rows of inPortions(frames)) {
      for (const id of await this.#findSome(rows, today)) stored.add(id)
    }
    return stored
  }

  /** By ClickHouse's clock, for it is ClickHouse that removes what expires: YYYY-MM-DD. */
  async #today(): Promise<string> {
    const query = "SELECT toString(toDate(now('UTC'))) AS today"
    const [row] = await (await this.#client.query({ query, format: 'JSONEachRow' })).json<{ today: string }>()
    if (row === undefined) throw new Error('ClickHouse does not say what day it is')
    return row.today
  }

  async #findSome(rows: readonly string[], today: string): Promise<string[]> {
    const columns = rows.map((row) => row.split('\t', ID + 1)).filter((row) => UUID.test(row[ID] ?? ''))
    const isExpired = (row: readonly string[]): boolean => (row[EXPIRES_ON] ?? '') <= today
    const expired = columns.filter(isExpired).map((row) => row[ID] ?? '')
    const kept = columns.filter((row) => !isExpired(row))
    if (kept.length === 0) return expired
    const times = kept.map((row) => row[RECEIVED_AT] ?? '').toSorted()
    const result = await this.#client.query({
      // The partitions and the index of the times leave next to nothing to be read.
      query: `SELECT toString(id) AS id FROM ${logsTable}
        WHERE expires_on IN {days: Array(Date)} AND received_at BETWEEN {from: DateTime64(3, 'UTC')} AND {to: DateTime64(3, 'UTC')}
        AND id IN (${kept.map((row) => `'${row[ID]}'`).join()})`,
      query_params: {
        days: [...new Set(kept.map((row) => row[EXPIRES_ON]))],
        from: times.at(0),
        to: times.at(-1),
      },
      format: 'JSONEachRow',
    })
    return [...expired, ...(await result.json<{ id: string }>()).map(({ id }) => id)]
  }
}

/** Frames without the rows that are stored. */
export function framesWithout(stored: ReadonlySet<string>, frames: readonly Buffer[]): Buffer[] {
  if (stored.size === 0) return [...frames]
  return frames.flatMap((frame) => {
    const rows = linesOf(frame)
    // ClickHouse is to say what is wrong with a frame that cannot be read.
    if (rows === undefined) return [frame]
    const missing = rows.filter((row) => !stored.has(idOf(row)))
    if (missing.length === rows.length) return [frame]
    return missing.length === 0 ? [] : [encodeFrame(missing.join(''))]
  })
}

function idOf(row: string): string {
  return row.split('\t', ID + 1)[ID]?.trimEnd() ?? ''
}

/** The rows of a frame, each with its newline; undefined when it cannot be decompressed. */
export function linesOf(frame: Buffer): string[] | undefined {
  try {
    return zstdLines(frame)
  } catch {
    return undefined
  }
}

function* inPortions(frames: readonly Buffer[]): Generator<string[]> {
  let portion: string[] = []
  for (const frame of frames) {
    for (const row of linesOf(frame) ?? []) {
      portion.push(row)
      if (portion.length < ROWS_PER_QUERY_MAX) continue
      yield portion
      portion = []
    }
  }
  if (portion.length > 0) yield portion
}
