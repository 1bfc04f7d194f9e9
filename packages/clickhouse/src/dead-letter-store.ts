import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client'
import { parseObject } from '@sluice/runtime'
import { hash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { readRows } from './client.ts'
import { STILL_RUNNING, TokenWithoutRowsError } from './insert-errors.ts'
import { publicReason } from './dead-letters.ts'
import { InsertOnce, REPLACEMENTS_MAX } from './insert-once.ts'
import { queryIds } from './query-watch.ts'
import { deadLettersTable, logsInsertJsonQuery, logsInsertSettings, logsTable } from './tables.ts'

/** A dead letter as it is stored. `failedAt` is ISO 8601. */
export interface StoredDeadLetter {
  readonly id: string
  readonly failedAt: string
  readonly projectId: string
  readonly code: string
  readonly reason: string
  readonly text: string
}

/**
 * Runs an insert of a row with this time of receipt, ms since 1970, or a later one. Nobody was told that all rows of it are stored. It must be
 * asked for right before the row is sent, and throws if it is too late for that.
 */
export type LateInserts = <Result>(insert: (receivedMs: () => number) => Promise<Result>) => Promise<Result>

export interface RetryOutcome {
  readonly id: string
  /** Why it is still a dead letter; undefined if its row was inserted. */
  readonly rejection: string | undefined
}

const COLUMNS = `id, formatDateTime(failed_at, '%FT%T.%fZ', 'UTC') AS failedAt, project_id AS projectId, code, reason, text`

/** Dead letters retried by one command. Each is a separate insert. */
const RETRY_MAX = 10_000

/** Lists, retries and removes dead letters. */
export class DeadLetterStore {
  readonly #client: ClickHouseClient
  readonly #sleep: (ms: number) => Promise<unknown>

  constructor(client: ClickHouseClient, sleep: (ms: number) => Promise<unknown> = setTimeout) {
    this.#client = client
    this.#sleep = sleep
  }

  /** Newest first. */
  async list(projectId: string | undefined, limit: number): Promise<StoredDeadLetter[]> {
    const condition = projectId === undefined ? '' : 'WHERE project_id = {projectId: String}'
    const rest = `${condition} ORDER BY failed_at DESC, id LIMIT {limit: UInt32}`
    return this.#select(rest, { projectId, limit })
  }

  /** How many there are, and how many of them were stored since midnight, UTC. */
  async count(): Promise<{ readonly total: number; readonly today: number }> {
    const [counts] = await this.#rows<{ total: string; today: string }>(
      `SELECT toString(count()) AS total, toString(countIf(failed_at >= toStartOfDay(now('UTC')))) AS today FROM ${deadLettersTable}`,
    )
    return { total: Number(counts?.total ?? 0), today: Number(counts?.today ?? 0) }
  }

  async find(id: string): Promise<StoredDeadLetter | undefined> {
    const [letter] = await this.#select('WHERE id = {id: UUID}', { id })
    return letter
  }

  /** The ids of those with a code and a public reason, oldest first, at most as many as are retried. */
  async ids({ code, reason }: { readonly code: string; readonly reason: string }): Promise<string[]> {
    const rows = await this.#rows<{ id: string }>(
      `SELECT id FROM ${deadLettersTable} WHERE code = {code: String} AND ${publicReason} = {reason: String}
        ORDER BY failed_at, id LIMIT ${RETRY_MAX}`,
      { code, reason },
    )
    return rows.map(({ id }) => id)
  }

  /**
   * Inserts the rows of dead letters again, one by one, and removes the dead letters whose rows a lookup has found.
   *
   * @param late runs each insert
   */
  async retry(choice: readonly StoredDeadLetter[] | 'all', late: LateInserts): Promise<RetryOutcome[]> {
    const letters = choice === 'all' ? await this.list(undefined, RETRY_MAX) : choice
    // On a cluster, a lookup may reach a replica that lags. A replacement token would then store the row twice.
    const replacementsMax = (await this.#isReplicated()) ? 0 : REPLACEMENTS_MAX
    const outcomes: RetryOutcome[] = []
    for (const letter of letters) {
      const rejection = await late((receivedMs) => this.#retryOne(letter, receivedMs, replacementsMax))
      outcomes.push({ id: letter.id, rejection })
    }
    return outcomes
  }

  /** @returns the number of removed dead letters */
  async purge(choice: readonly string[] | 'all'): Promise<number> {
    const condition = choice === 'all' ? 'true' : 'id IN {ids: Array(UUID)}'
    const parameters = choice === 'all' ? {} : { ids: choice }
    const [found] = await this.#rows<{ count: string }>(
      `SELECT toString(count()) AS count FROM ${deadLettersTable} WHERE ${condition}`,
      parameters,
    )
    const query = `DELETE FROM ${deadLettersTable} WHERE ${condition}`
    await this.#client.command({ query, query_params: parameters })
    return Number(found?.count ?? 0)
  }

  /** @returns why it was rejected */
  async #retryOne(
    letter: StoredDeadLetter,
    receivedMs: () => number,
    replacementsMax: number,
  ): Promise<string | undefined> {
    const key = rowKeyOf(letter.text)
    if (key === undefined) return 'the text is not a JSON object with an id (a UUID) and a project_id'
    const { id, text } = letter
    const insert = new InsertOnce(
      {
        all: [text],
        // An edited row needs another token: ClickHouse may have the token of the earlier one.
        token: `dead-letter/${id}/${hash('sha256', text)}`,
        // An interrupted retry may have stored the row before its dead letter was removed.
        wasSent: true,
        replacementsMax,
        findMissing: async () => ((await this.#isStored(key)) ? [] : [text]),
        insert: async (_missing, token) => {
          await this.#client.command({
            query: `${logsInsertJsonQuery}\n${withReceiptFrom(receivedMs(), text)}`,
            query_id: queryIds.deadLetterRetry(id),
            clickhouse_settings: { ...logsInsertSettings, insert_deduplication_token: token },
          })
        },
      },
      // The row is looked up after the insert in any case. Otherwise a token without its row would lose the row.
      { areTokensAtomic: false, sleep: this.#sleep, beforeAttempt: () => Promise.resolve() },
    )
    try {
      await insert.run()
    } catch (error) {
      if (error instanceof TokenWithoutRowsError) return 'inserted, but not found afterwards'
      if (!(error instanceof ClickHouseError)) throw error
      if (error.code === STILL_RUNNING) return 'another retry of it is running'
      return `${error.type ?? 'code'} ${error.code}`
    }
    await this.#remove(letter)
    return undefined
  }

  /** Removes a dead letter, unless it was edited since it was read: the edited row is not stored. */
  async #remove({ id, text }: StoredDeadLetter): Promise<void> {
    await this.#client.command({
      query: `DELETE FROM ${deadLettersTable} WHERE id = {id: UUID} AND SHA256(text) = unhex({sha256: String})`,
      query_params: { id, sha256: hash('sha256', text) },
    })
  }

  async #isStored(key: LetterKey): Promise<boolean> {
    // The sorting key is (project_id, timestamp), and a partition has the rows of one day of expiry. With all of these columns,
    // ClickHouse reads one granule; with the first alone, all rows of the project.
    const conditions = ['project_id = {projectId: String}', 'id = toUUIDOrZero({id: String})']
    if (key.timestamp !== undefined)
      conditions.push("timestamp = parseDateTime64BestEffortOrZero({timestamp: String}, 6, 'UTC')")
    if (key.expiresOn !== undefined) conditions.push('expires_on = {expiresOn: Date}')
    const rows = await this.#rows(`SELECT 1 FROM ${logsTable} WHERE ${conditions.join(' AND ')} LIMIT 1`, {
      ...key,
    })
    return rows.length > 0
  }

  async #isReplicated(): Promise<boolean> {
    const rows = await this.#rows(
      `SELECT 1 FROM system.tables WHERE database = currentDatabase() AND name = {table: String} AND engine LIKE 'Replicated%'`,
      { table: logsTable },
    )
    return rows.length > 0
  }

  async #select(rest: string, parameters: Record<string, unknown>): Promise<StoredDeadLetter[]> {
    return this.#rows<StoredDeadLetter>(`SELECT ${COLUMNS} FROM ${deadLettersTable} ${rest}`, parameters)
  }

  #rows<Row>(query: string, parameters?: Record<string, unknown>): Promise<Row[]> {
    return readRows<Row>(this.#client, query, parameters)
  }
}

/** The columns by which the row of a dead letter is looked up. */
interface LetterKey {
  readonly id: string
  readonly projectId: string
  readonly timestamp: string | undefined
  readonly expiresOn: string | undefined
}

/** The forms that rows have. An operator may have edited the row, and ClickHouse reads other forms by rules that depend on the day. */
const ROW_TIMESTAMP = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?Z?$/
const ROW_DATE = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/

/** The forms of a UUID that ClickHouse reads. The UUID of zeros is excluded: it stands for a missing one. */
const ROW_ID =
  /^(?!0{8}-?0{4}-?0{4}-?0{4}-?0{12}$)(?:[\da-f]{32}|[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12})$/i

/**
 * The key comes from `text` alone, because ClickHouse stores that.
 *
 * @returns undefined if the row could not be looked up. ClickHouse might still accept it, and give it an id of zeros
 */
function rowKeyOf(text: string): LetterKey | undefined {
  const row = parseObject(text)
  const id = textOf(row?.['id'], ROW_ID)
  const projectId = row?.['project_id']
  if (row === undefined || id === undefined || typeof projectId !== 'string') return undefined
  return {
    id,
    projectId,
    timestamp: textOf(row['timestamp'], ROW_TIMESTAMP),
    expiresOn: textOf(row['expires_on'], ROW_DATE),
  }
}

/** @param text a JSON object */
function withReceiptFrom(receivedMs: number, text: string): string {
  const row = parseObject(text)
  const receivedAt = textOf(row?.['received_at'], ROW_TIMESTAMP)
  if (
    receivedAt !== undefined &&
    Date.parse(`${receivedAt.replace('Z', '').replace(' ', 'T')}Z`) >= receivedMs
  )
    return text
  return JSON.stringify({ ...row, received_at: new Date(receivedMs).toISOString().slice(0, -1) })
}

function textOf(value: unknown, form: RegExp): string | undefined {
  return typeof value === 'string' && form.test(value) ? value : undefined
}
