import type { ClickHouseClient } from '@clickhouse/client'
import { toClickHouseTime } from '@sluice/rows'
import { parseObject } from '@sluice/runtime'
import { hash } from 'node:crypto'
import { InsertOnce, type InsertOnceOptions, type InsertTarget, REPLACEMENTS_MAX } from './insert-once.ts'
import { insertStream, queryIds, type QueryWatcher, selectRows } from './query-watch.ts'
import { deadLettersTable } from './tables.ts'

/** A row that ClickHouse rejected, or a chunk that cannot be decompressed. */
export interface DeadLetter {
  /** ClickHouse's name of the error, or UNREADABLE_CHUNK. */
  readonly code: string
  /** May quote the row, so it must never be logged. */
  readonly reason: string
  readonly text: string
}

const REASON_CHARACTERS_MAX = 2_000

/** Stores dead letters in ClickHouse, where they are safe and can be queried. */
export class DeadLetters {
  readonly #client: ClickHouseClient
  readonly #makeId: () => string
  readonly #wallMs: () => number
  readonly #options: InsertOnceOptions
  readonly #watch: QueryWatcher

  /** @param wallMs the clock of Redis, ms since 1970: ClickHouse drops dead letters 90 days after this time */
  constructor(
    client: ClickHouseClient,
    makeId: () => string,
    wallMs: () => number,
    options: InsertOnceOptions,
    watch: QueryWatcher,
  ) {
    this.#client = client
    this.#makeId = makeId
    this.#wallMs = wallMs
    this.#options = options
    this.#watch = watch
  }

  /**
   * Prepares the attempts to store a dead letter once.
   *
   * @param token the same for the same row, in whichever process
   * @param wasSent whether another process may have stored it
   */
  prepare(letter: DeadLetter, token: string, wasSent: boolean): InsertOnce<DeadLetter> {
    const target: InsertTarget<DeadLetter> = {
      all: [letter],
      findMissing: async () => ((await this.#has(letter)) ? [] : [letter]),
      insert: (_missing, itsToken) => this.#insert(letter, itsToken),
      isRunning: (itsToken) => this.#watch.isRunning(queryIds.deadLetter(itsToken)),
    }
    return new InsertOnce(target, token, { wasSent, replacementsMax: REPLACEMENTS_MAX }, this.#options)
  }

  async #has({ text }: DeadLetter): Promise<boolean> {
    // By its hash: a query parameter is part of the URL, which has no room for a row.
    const queryId = queryIds.lookup(this.#makeId())
    const rows = await selectRows(this.#client, this.#watch, queryId, {
      query: `SELECT 1 FROM ${deadLettersTable} WHERE project_id = {projectId: String} AND SHA256(text) = unhex({sha256: String}) LIMIT 1`,
      query_params: { projectId: projectOf(text), sha256: hash('sha256', text) },
    })
    return rows.length > 0
  }

  async #insert({ code, reason, text }: DeadLetter, token: string): Promise<void> {
    const row = {
      id: this.#makeId(),
      project_id: projectOf(text),
      failed_at: toClickHouseTime(this.#wallMs()),
      code,
      reason: reason.slice(0, REASON_CHARACTERS_MAX),
      text,
    }
    const params = {
      query: `INSERT INTO ${deadLettersTable} FORMAT JSONEachRow`,
      clickhouse_settings: { async_insert: 0, insert_deduplicate: 1, insert_deduplication_token: token },
    } as const
    await insertStream(this.#client, this.#watch, queryIds.deadLetter(token), params, () => [
      Buffer.from(JSON.stringify(row)),
    ])
  }
}

/** Empty if it is not a row. */
function projectOf(text: string): string {
  const projectId = parseObject(text)?.['project_id']
  return typeof projectId === 'string' ? projectId : ''
}
