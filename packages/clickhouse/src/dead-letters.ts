import type { ClickHouseClient } from '@clickhouse/client'
import { toClickHouseTime } from '@sluice/rows'
import { parseObject } from '@sluice/runtime'
import { hash, randomUUID } from 'node:crypto'
import { InsertOnce, type InsertOnceOptions, REPLACEMENTS_MAX } from './insert-once.ts'
import { insertStream, lookUp, queryIds, type QueryWatcher } from './query-watch.ts'
import { quote } from './sql.ts'
import { deadLettersTable } from './tables.ts'

/** A row that ClickHouse rejected, or a chunk that cannot be read. */
export interface DeadLetter {
  /** ClickHouse's name of the error, or UNREADABLE_CHUNK. */
  readonly code: string
  /** May quote the row, so it must never be logged. */
  readonly reason: string
  readonly text: string
}

const REASON_CHARACTERS_MAX = 2_000

/**
 * SQL: the part of a reason that never has a value of a row, for those who may not read its project. Of ClickHouse's own texts, that is only the
 * name of a constraint.
 */
export const publicReason = `multiIf(code IN ('UNREADABLE_CHUNK', 'REJECTED'), reason,
  code = 'VIOLATED_CONSTRAINT', extract(reason, '^Constraint \`[^\`]*\`'), '')`

export interface DeadLettersOptions extends InsertOnceOptions {
  readonly client: ClickHouseClient
  readonly watch: QueryWatcher
  /** The clock of Redis, ms since 1970: ClickHouse drops dead letters 90 days after this time. */
  readonly wallMs: () => number
}

export type DeadLetters = ReturnType<typeof deadLetterWriter>

/** Stores dead letters in ClickHouse, where they are safe and can be queried. */
export function deadLetterWriter(options: DeadLettersOptions) {
  const { client, watch, wallMs } = options

  async function findMissing(letters: readonly DeadLetter[]): Promise<readonly DeadLetter[]> {
    // By their hashes: a query has no room for the rows.
    const byHash = new Map(letters.map((letter) => [hash('sha256', letter.text), letter]))
    const [projects, hashes] = [letters.map(({ text }) => projectOf(text)), [...byHash.keys()]].map(
      (values) => values.map(quote).join(', '),
    )
    const stored = await lookUp<{ hash: string }>(client, watch, {
      query: `SELECT lower(hex(SHA256(text))) AS hash FROM ${deadLettersTable}
        WHERE project_id IN (${projects}) AND hash IN (${hashes})`,
    })
    for (const { hash: found } of stored) byHash.delete(found)
    return [...byHash.values()]
  }

  async function insert(letters: readonly DeadLetter[], token: string): Promise<void> {
    const failedAt = toClickHouseTime(wallMs())
    const rows = letters.map(({ code, reason, text }) => ({
      id: randomUUID(),
      project_id: projectOf(text),
      failed_at: failedAt,
      code,
      reason: reason.slice(0, REASON_CHARACTERS_MAX),
      text,
    }))
    const params = {
      query: `INSERT INTO ${deadLettersTable} FORMAT JSONEachRow`,
      clickhouse_settings: { async_insert: 0, insert_deduplicate: 1, insert_deduplication_token: token },
    } as const
    await insertStream(client, watch, queryIds.deadLetter(token), params, () =>
      rows.map((row) =>
        Buffer.from(`${JSON.stringify(row)}
`),
      ),
    )
  }

  return {
    /**
     * Prepares the attempts to store dead letters once.
     *
     * @param token the same for the same letters, in whichever process
     * @param wasSent whether another process may have stored them
     */
    prepare: (letters: readonly DeadLetter[], token: string, wasSent: boolean): InsertOnce<DeadLetter> =>
      new InsertOnce<DeadLetter>(
        {
          all: letters,
          token,
          wasSent,
          replacementsMax: REPLACEMENTS_MAX,
          findMissing: () => findMissing(letters),
          insert,
          isRunning: () => watch.isRunning(queryIds.deadLetter(token)),
        },
        options,
      ),
  }
}

/** Empty if it is not a row. */
function projectOf(text: string): string {
  const projectId = parseObject(text)?.['project_id']
  return typeof projectId === 'string' ? projectId : ''
}
