import { ClickHouseError } from '@clickhouse/client'
import type { ClickHouseClient } from '@sluice/runtime'
import { deadLettersTable, logsInsertJsonQuery, logsInsertSettings, logsTable } from '@sluice/schema'
import { setTimeout as delay } from 'node:timers/promises'
import { CliError } from '../errors.ts'

/** A dead letter as it is shown. `failedAt` is ISO 8601. */
export interface ShownLetter {
  readonly id: string
  readonly failedAt: string
  readonly projectId: string
  readonly code: string
  readonly reason: string
  readonly text: string
}

export interface RetryOutcome {
  readonly id: string
  /** Why it is a dead letter still; undefined when it went in. */
  readonly refusal: string | undefined
}

const COLUMNS = `id, formatDateTime(failed_at, '%FT%T.%fZ', 'UTC') AS failedAt, project_id AS projectId, code, reason, text`

/** Dead letters retried in one go; each is an insert of its own. */
const RETRY_MAX = 10_000
/** Far longer than a server needs from the note of a token to the row: another's insert is done after that, or never. */
const SETTLE_MS = 2_000

/** Reads, retries and removes the dead letters in ClickHouse. */
export class DeadLetterStore {
  readonly #client: ClickHouseClient

  constructor(client: ClickHouseClient) {
    this.#client = client
  }

  /** The newest first. */
  async list(projectId: string | undefined, limit: number): Promise<ShownLetter[]> {
    const condition = projectId === undefined ? '' : 'WHERE project_id = {projectId: String}'
    return this.#select(`${condition} ORDER BY failed_at DESC, id LIMIT {limit: UInt32}`, {
      projectId,
      limit,
    })
  }

  /** @throws CliError when there is no such dead letter */
  async find(id: string): Promise<ShownLetter> {
    const [letter] = await this.#select('WHERE id = {id: UUID}', { id })
    if (letter === undefined) throw new CliError(`there is no dead letter ${id}`)
    return letter
  }

  /** Inserts rows again, one by one, and removes those that went in. */
  async retry(choice: readonly string[] | 'all'): Promise<RetryOutcome[]> {
    const letters =
      choice === 'all'
        ? await this.list(undefined, RETRY_MAX)
        : await Promise.all(choice.map((id) => this.find(id)))
    const outcomes: RetryOutcome[] = []
    for (const letter of letters) outcomes.push({ id: letter.id, refusal: await this.#retryOne(letter) })
    return outcomes
  }

  /** @returns how many there were */
  async purge(choice: readonly string[] | 'all'): Promise<number> {
    const condition = choice === 'all' ? 'true' : 'id IN {ids: Array(UUID)}'
    const parameters = choice === 'all' ? {} : { ids: choice }
    const [found] = await this.#rows<{ count: string }>(
      `SELECT toString(count()) AS count FROM ${deadLettersTable} WHERE ${condition}`,
      parameters,
    )
    await this.#client.command({
      query: `DELETE FROM ${deadLettersTable} WHERE ${condition}`,
      query_params: parameters,
    })
    return Number(found?.count ?? 0)
  }

  async #retryOne(letter: ShownLetter): Promise<string | undefined> {
    try {
      if (!(await this.#bringIn(letter))) return 'inserted, but not to be found afterwards'
    } catch (error) {
      if (error instanceof ClickHouseError) return `${error.type ?? 'code'} ${error.code}`
      throw error
    }
    await this.purge([letter.id])
    return undefined
  }

  /**
   * A retry that was interrupted before its dead letter was removed must not insert the row twice: the token takes care of
   * that for as long as ClickHouse remembers it, the look for the row's id for ever. And a token that ClickHouse noted just
   * before it died keeps out a row that it does not have (the worker's `resend.ts` says more), so another one is tried.
   *
   * @returns whether the row is stored
   */
  async #bringIn({ id, projectId, text }: ShownLetter): Promise<boolean> {
    const rowId = rowIdOf(text)
    // Nobody can look for it; ClickHouse will say that it is no row.
    if (rowId === undefined) {
      await this.#insert(text, `dead-letter/${id}`)
      return true
    }
    if (await this.#isStored(projectId, rowId)) return true
    await this.#insert(text, `dead-letter/${id}`)
    // A replicated table notes tokens together with their rows; the replica that is asked may be behind.
    if ((await this.#isStored(projectId, rowId)) || (await this.#isReplicated())) return true
    await delay(SETTLE_MS)
    if (await this.#isStored(projectId, rowId)) return true
    await this.#insert(text, `dead-letter/${id}/again`)
    return this.#isStored(projectId, rowId)
  }

  async #insert(text: string, token: string): Promise<void> {
    await this.#client.command({
      query: `${logsInsertJsonQuery}\n${text}`,
      clickhouse_settings: { ...logsInsertSettings, insert_deduplication_token: token },
    })
  }

  async #isStored(projectId: string, rowId: string): Promise<boolean> {
    const rows = await this.#rows(
      `SELECT 1 FROM ${logsTable} WHERE project_id = {projectId: String} AND toString(id) = {rowId: String} LIMIT 1`,
      { projectId, rowId },
    )
    return rows.length > 0
  }

  async #isReplicated(): Promise<boolean> {
    const rows = await this.#rows(
      `SELECT 1 FROM system.tables WHERE database = currentDatabase() AND name = {table: String} AND engine LIKE 'Replicated%'`,
      { table: logsTable },
    )
    return rows.length > 0
  }

  async #select(rest: string, parameters: Record<string, unknown>): Promise<ShownLetter[]> {
    return this.#rows<ShownLetter>(`SELECT ${COLUMNS} FROM ${deadLettersTable} ${rest}`, parameters)
  }

  async #rows<Row>(query: string, parameters: Record<string, unknown>): Promise<Row[]> {
    const result = await this.#client.query({ query, query_params: parameters, format: 'JSONEachRow' })
    return result.json<Row>()
  }
}

function rowIdOf(text: string): string | undefined {
  try {
    const { id } = JSON.parse(text) as { id?: unknown }
    return typeof id === 'string' ? id : undefined
  } catch {
    return undefined
  }
}
