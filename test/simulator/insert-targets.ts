import {
  type ClickHouseClient,
  classifyInsertError,
  type DeadLetter,
  DeadLetters,
  deadLettersTable,
  FrameInserter,
  logsTable,
  StoredRows,
} from '@sluice/clickhouse'
import { compressRows, makeRowPrefix, rowAsJson, shapeRow } from '@sluice/rows'
import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import {
  insertOptions,
  loseRows,
  openTestDatabase,
  unwatched,
} from '../../packages/clickhouse/test/test-database.ts'
import { rejectedIds, SimulatedClickHouse, WINDOW_MS } from './simulated-clickhouse.ts'

/** A row of a scenario. Rows of different partitions have different days of expiry. */
export interface ScenarioRow {
  readonly name: string
  readonly partition: 1 | 2 | 3
  /** With which kind of code it is rejected. */
  readonly rejected?: keyof typeof rejectedIds
  /** Rows of other projects are not among the results. */
  readonly projectId?: string
}

/** The age of all tokens. A table knows them at the end of its window. */
export type Age = 'end of the window' | 'past the window'

/** What `SimulatedClickHouse` simulates. Rows and dead letters are returned by their names, as often as they are stored. */
export type InsertTargets = Pick<RealTargets, keyof RealTargets>

/** @returns `stored`, or how the error is classified */
async function resultOf(insert: () => void | Promise<void>): Promise<unknown> {
  try {
    await insert()
    return 'stored'
  } catch (error) {
    const { failure, code } = classifyInsertError(error)
    return failure === 'unknown' ? failure : { failure, code }
  }
}

/** `SimulatedClickHouse`. */
export class SimulatedTargets implements InsertTargets {
  readonly #time = { nowMs: 0 }
  readonly #clickhouse = new SimulatedClickHouse(this.#time, {
    isShortOfMemory: false,
    failsForMemory: () => false,
    isTableBroken: false,
    acceptsAll: false,
    crashesInCommit: () => false,
    keepsPartOfRejected: () => false,
    storesRejected: false,
    isClockWrong: false,
  })

  async insert(frames: readonly (readonly ScenarioRow[])[], token: string): Promise<unknown> {
    return resultOf(() => this.#clickhouse.insert(frames.map(frameOf), token))
  }

  async find(frames: readonly (readonly ScenarioRow[])[]): Promise<readonly string[]> {
    return [...this.#clickhouse.find(frames.map(frameOf))].map(nameOf).toSorted()
  }

  async rows(): Promise<readonly string[]> {
    return this.#clickhouse.rows.map(nameOf).toSorted()
  }

  async hasDeadLetter(row: ScenarioRow): Promise<boolean> {
    return this.#clickhouse.hasDeadLetter(simulatedLetter(row))
  }

  async insertDeadLetter(row: ScenarioRow, token: string): Promise<void> {
    this.#clickhouse.insertDeadLetters([simulatedLetter(row)], token)
  }

  async deadLetters(): Promise<readonly string[]> {
    return this.#clickhouse.deadLetters.map(nameOf).toSorted()
  }

  async loseRow(row: ScenarioRow, token: string): Promise<void> {
    this.#whileCrashing(() => this.#clickhouse.insert([frameOf([row])], token))
  }

  async loseDeadLetter(row: ScenarioRow, token: string): Promise<void> {
    this.#whileCrashing(() => this.#clickhouse.insertDeadLetters([simulatedLetter(row)], token))
  }

  async keepPartOfRejected(): Promise<void> {
    this.#clickhouse.faults.keepsPartOfRejected = () => true
  }

  async breakTable(): Promise<void> {
    this.#clickhouse.faults.isTableBroken = true
  }

  async acceptAll(): Promise<void> {
    this.#clickhouse.faults.isTableBroken = false
    this.#clickhouse.faults.acceptsAll = true
  }

  async age(to: Age): Promise<void> {
    this.#time.nowMs = to === 'end of the window' ? WINDOW_MS - 1 : WINDOW_MS
  }

  #whileCrashing(insert: () => void): void {
    const { faults } = this.#clickhouse
    faults.crashesInCommit = () => true
    try {
      insert()
    } catch {
      // There is no response.
    } finally {
      faults.crashesInCommit = () => false
    }
  }
}

function frameOf(rows: readonly ScenarioRow[]): Buffer {
  return compressRows(rows.map(simulatedRow).join(''))
}

function simulatedRow({ name, partition, rejected }: ScenarioRow): string {
  const id = `${rejected === undefined ? '' : rejectedIds[rejected]}${name}`
  return `p\t2026-11-22 00:00:00\t2026-12-0${partition}\t${id}\t2026-11-22 00:00:00\n`
}

function nameOf(id: string): string {
  return id.replace(/^(poison|unknown)-/, '')
}

function simulatedLetter(row: ScenarioRow): DeadLetter {
  return { code: 'A_CODE', reason: 'a reason', text: simulatedRow(row) }
}

const PROJECT = 'p'
/** The tokens that a table remembers when tokens have aged. */
const WINDOW_TOKENS = 3
/** A string that is not JSON is rejected with INCORRECT_DATA, and an invalid pattern with a code that is not listed. */
const RULES = [
  { name: 'json', expression: `length(toString(CAST(message, 'JSON')))` },
  { name: 'pattern', expression: `match('', url)` },
] as const

/** The code of `packages/clickhouse` on a database in a real ClickHouse, with rules for rows. */
export class RealTargets implements InsertTargets {
  readonly #clickhouse: ClickHouseClient
  readonly #receivedAtMs = Date.now()
  /** The ids of rows, by their names. */
  readonly #ids = new Map<string, string>()

  private constructor(clickhouse: ClickHouseClient) {
    this.#clickhouse = clickhouse
  }

  /** The connection is closed at the end of the test. */
  static async open(): Promise<RealTargets> {
    const clickhouse = await openTestDatabase()
    onTestFinished(() => clickhouse.close())
    const targets = new RealTargets(clickhouse)
    for (const { name, expression } of RULES)
      await targets.#alter(logsTable, `ADD CONSTRAINT ${name} CHECK ${expression} >= 0`)
    return targets
  }

  async insert(frames: readonly (readonly ScenarioRow[])[], token: string): Promise<unknown> {
    return resultOf(() => new FrameInserter(this.#clickhouse, unwatched).insert(this.#frames(frames), token))
  }

  async find(frames: readonly (readonly ScenarioRow[])[]): Promise<readonly string[]> {
    return this.#names(await new StoredRows(this.#clickhouse, Date.now, unwatched).find(this.#frames(frames)))
  }

  async rows(): Promise<readonly string[]> {
    return this.#names(await this.#select('toString(id)', logsTable))
  }

  async hasDeadLetter(row: ScenarioRow): Promise<boolean> {
    // What is not found would be inserted.
    const withoutInserts = new Proxy(this.#clickhouse, {
      get: (client, name) => {
        if (name === 'exec') return () => Promise.reject(new NotFoundError())
        const member: unknown = Reflect.get(client, name, client)
        return typeof member === 'function' ? member.bind(client) : member
      },
    })
    try {
      await deadLettersOf(withoutInserts)
        .prepare([this.#letter(row)], randomUUID(), true)
        .run()
      return true
    } catch (error) {
      if (error instanceof NotFoundError) return false
      throw error
    }
  }

  async insertDeadLetter(row: ScenarioRow, token: string): Promise<void> {
    await deadLettersOf(this.#clickhouse)
      .prepare([this.#letter(row)], token, false)
      .run()
  }

  async deadLetters(): Promise<readonly string[]> {
    return this.#names(await this.#select(`JSONExtractString(text, 'id')`, deadLettersTable))
  }

  /** Inserts a row, and stores its token only. */
  async loseRow(row: ScenarioRow, token: string): Promise<void> {
    await this.insert([[row]], token)
    await loseRows(this.#clickhouse, logsTable, PROJECT, `id = '${this.#id(row)}'`)
  }

  async loseDeadLetter(row: ScenarioRow, token: string): Promise<void> {
    await this.insertDeadLetter(row, token)
    await loseRows(this.#clickhouse, deadLettersTable, PROJECT, `text LIKE '%${this.#id(row)}%'`)
  }

  /** Rejections may keep partitions of the insert from now on. */
  async keepPartOfRejected(): Promise<void> {
    // ClickHouse computes the index of a partition when it writes it. The partitions before it are stored by then.
    for (const { name, expression } of RULES) {
      await this.#alter(logsTable, `DROP CONSTRAINT ${name}`)
      await this.#alter(logsTable, `ADD INDEX ${name} ${expression} TYPE minmax`)
    }
  }

  /** All rows are rejected from now on, with a code that is not listed. */
  async breakTable(): Promise<void> {
    await this.#alter(logsTable, `ADD CONSTRAINT broken CHECK match('', concat('[', project_id)) >= 0`)
  }

  /** No row is rejected from now on. */
  async acceptAll(): Promise<void> {
    for (const { name } of [...RULES, { name: 'broken' }]) {
      await this.#alter(logsTable, `DROP CONSTRAINT IF EXISTS ${name}`)
      await this.#alter(logsTable, `DROP INDEX IF EXISTS ${name}`)
    }
  }

  async age(to: Age): Promise<void> {
    const others = to === 'end of the window' ? WINDOW_TOKENS - 1 : WINDOW_TOKENS
    for (const table of [logsTable, deadLettersTable])
      await this.#alter(table, `MODIFY SETTING non_replicated_deduplication_window = ${WINDOW_TOKENS}`)
    for (let i = 0; i < others; i += 1) {
      const other = { name: randomUUID(), partition: 1, projectId: 'another' } as const
      await this.insert([[other]], randomUUID())
      await this.insertDeadLetter(other, randomUUID())
    }
  }

  async #alter(table: string, change: string): Promise<void> {
    await this.#clickhouse.command({ query: `ALTER TABLE ${table} ${change}` })
  }

  async #select(expression: string, table: string): Promise<string[]> {
    const result = await this.#clickhouse.query({
      query: `SELECT ${expression} AS id FROM ${table} WHERE project_id = {projectId: String}`,
      query_params: { projectId: PROJECT },
      format: 'JSONEachRow',
    })
    return (await result.json<{ id: string }>()).map(({ id }) => id)
  }

  #names(ids: Iterable<string>): string[] {
    const names = new Map([...this.#ids].map(([name, id]) => [id, name]))
    return [...ids].map((id) => names.get(id) ?? id).toSorted()
  }

  #id({ name }: ScenarioRow): string {
    const id = this.#ids.get(name) ?? randomUUID()
    this.#ids.set(name, id)
    return id
  }

  #frames(frames: readonly (readonly ScenarioRow[])[]): Buffer[] {
    return frames.map((rows) => compressRows(rows.map((row) => this.#row(row)).join('')))
  }

  #row(row: ScenarioRow): string {
    const { partition, rejected, projectId = PROJECT } = row
    const prefix = makeRowPrefix({
      projectId,
      retentionDays: 30 + partition,
      receivedAtMs: this.#receivedAtMs,
    })
    const entry = {
      level: 'info',
      message: rejected === 'poison' ? '{x' : '{}',
      ...(rejected === 'unknown' && { url: '[' }),
    } as const
    const shaped = shapeRow(entry, this.#id(row), prefix, false)
    if ('error' in shaped) throw new Error(shaped.error.message)
    return shaped.row
  }

  #letter(row: ScenarioRow): DeadLetter {
    return { code: 'A_CODE', reason: 'a reason', text: rowAsJson(this.#row(row)) ?? '' }
  }
}

class NotFoundError extends Error {
  override name = 'NotFoundError'
}

function deadLettersOf(clickhouse: ClickHouseClient): DeadLetters {
  const options = { ...insertOptions, areTokensAtomic: true }
  return new DeadLetters(clickhouse, randomUUID, Date.now, options, unwatched)
}
