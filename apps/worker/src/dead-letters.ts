import type { ClickHouseClient } from '@sluice/runtime'
import { deadLettersTable, toClickHouseTime } from '@sluice/schema'

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

  constructor(client: ClickHouseClient, makeId: () => string, now: () => number) {
    this.#client = client
    this.#makeId = makeId
    this.#now = now
  }

  /** @param token setting the same row aside again, with its token, adds nothing */
  async add({ code, reason, text }: DeadLetter, token: string): Promise<void> {
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
