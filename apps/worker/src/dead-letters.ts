import { hash } from 'node:crypto'
import type { ClickHouseClient } from '@sluice/runtime'
import { deadLettersTable, toClickHouseTime } from '@sluice/schema'
import { tries, type ResendOptions } from './resend.ts'

/** A row that ClickHouse refused for itself, or a chunk that cannot be read. */
export interface DeadLetter {
  /** ClickHouse's name of the error, or UNREADABLE_CHUNK. */
  readonly code: string
  /** May quote the text, so it is never logged. */
  readonly reason: string
  readonly text: string
}

const REASON_CHARACTERS_MAX = 2_000

/** Sets rows aside in ClickHouse, where they survive and can be queried. */
export class DeadLetters {
  readonly #client: ClickHouseClient
  readonly #makeId: () => string
  readonly #now: () => number
  readonly #options: ResendOptions

  /** @param now the clock, in ms since 1970 */
  constructor(client: ClickHouseClient, makeId: () => string, now: () => number, options: ResendOptions) {
    this.#client = client
    this.#makeId = makeId
    this.#now = now
    this.#options = options
  }

  /**
   * @param token setting the same row aside again, with its token, adds nothing
   * @param mayBeThere whether another process may have set it aside
   * @returns a function of which each call is a try
   */
  tries(letter: DeadLetter, token: string, mayBeThere: boolean): () => Promise<void> {
    const all = [letter]
    const findMissing = async (): Promise<DeadLetter[]> => ((await this.#has(letter)) ? [] : all)
    const insert = (_missing: readonly DeadLetter[], itsToken: string): Promise<void> =>
      this.#insert(letter, itsToken)
    return tries({ all, findMissing, insert }, token, mayBeThere, this.#options)
  }

  async #has({ text }: DeadLetter): Promise<boolean> {
    // By its hash: a parameter is a part of the address, which has no room for a text.
    const result = await this.#client.query({
      query: `SELECT 1 FROM ${deadLettersTable} WHERE project_id = {projectId: String} AND SHA256(text) = unhex({sha256: String}) LIMIT 1`,
      query_params: { projectId: projectOf(text), sha256: hash('sha256', text) },
      format: 'JSONEachRow',
    })
    return (await result.json()).length > 0
  }

  async #insert({ code, reason, text }: DeadLetter, token: string): Promise<void> {
    await this.#client.insert({
      table: deadLettersTable,
      format: 'JSONEachRow',
      values: [
        {
          id: this.#makeId(),
          project_id: projectOf(text),
          failed_at: toClickHouseTime(this.#now()),
          code,
          reason: reason.slice(0, REASON_CHARACTERS_MAX),
          text,
        },
      ],
      clickhouse_settings: { async_insert: 0, insert_deduplicate: 1, insert_deduplication_token: token },
    })
  }
}

function projectOf(text: string): string {
  try {
    const { project_id: projectId } = JSON.parse(text) as { project_id?: unknown }
    return typeof projectId === 'string' ? projectId : ''
  } catch {
    return ''
  }
}
