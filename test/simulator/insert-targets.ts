import {
  type ClickHouseClient,
  classifyInsertError,
  type DeadLetter,
  type DeadLetters,
  deadLetterWriter,
  deadLettersTable,
  FrameInserter,
  logsTable,
  storedRowFinder,
} from '@sluice/clickhouse'
import { compressBlock, compressRows, rowAsJson, rowKey, readJoined } from '@sluice/rows'
import { encodeBlock, rowOf, textPrefix } from '@sluice/rows/testing'
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
  readonly id: string
  readonly partition: 1 | 2 | 3
  /** With which kind of code it is rejected. */
  readonly rejected?: keyof typeof rejectedIds
  /** Rows of other projects are not among the results. */
  readonly projectId?: string
}

type Frames = readonly (readonly ScenarioRow[])[]

/** What `SimulatedClickHouse` simulates. Rows and dead letters are returned by their ids, as often as they are stored. */
export interface InsertTargets {
  /** @returns `stored`, or how the error is classified */
  readonly insert: (frames: Frames, token?: string) => Promise<unknown>
  readonly find: (frames: Frames) => Promise<readonly string[]>
  readonly rows: () => Promise<readonly string[]>
  readonly hasDeadLetter: (row: ScenarioRow) => Promise<boolean>
  readonly insertDeadLetter: (row: ScenarioRow, token?: string) => Promise<void>
  readonly deadLetters: () => Promise<readonly string[]>
  /** Inserts a row, and stores its token only. */
  readonly loseRow: (row: ScenarioRow) => Promise<void>
  readonly loseDeadLetter: (row: ScenarioRow) => Promise<void>
  /** Rejections may keep partitions of the insert from now on. */
  readonly keepPartOfRejected: () => Promise<void>
  /** All rows are rejected from now on, with a code that is not listed. */
  readonly breakTable: () => Promise<void>
  /** No row is rejected from now on. */
  readonly acceptAll: () => Promise<void>
  /** The age of all tokens. A table knows them at the end of its window, and not past it. */
  readonly age: (to: 'end' | 'past') => Promise<void>
}

const TOKEN = 'token'

async function resultOf(insert: () => void | Promise<void>): Promise<unknown> {
  try {
    await insert()
    return 'stored'
  } catch (error) {
    const { failure, code } = classifyInsertError(error)
    return failure === 'unknown' ? failure : { failure, code }
  }
}

const asText = (rows: readonly string[]): Buffer => compressRows(rows.join(''))
const asBlock = (rows: readonly string[]): Buffer => compressBlock(readJoined(encodeBlock(rows)))

const simulatedRow = ({ id, partition, rejected }: ScenarioRow): string =>
  `p\t2026-11-22 00:00:00\t2026-12-0${partition}\t${rejected === undefined ? '' : rejectedIds[rejected]}${id}\t2026-11-22 00:00:00\n`
const simulatedFrames = (frames: Frames): Buffer[] => frames.map((rows) => asText(rows.map(simulatedRow)))
const sorted = (ids: Iterable<string>): string[] =>
  [...ids].map((id) => id.replace(/^(poison|unknown)-/, '')).toSorted()

const simulatedLetter = (row: ScenarioRow): DeadLetter => ({ code: '', reason: '', text: simulatedRow(row) })

export function simulatedTargets(): InsertTargets {
  const time = { nowMs: 0 }
  const clickhouse = new SimulatedClickHouse(time)
  const { faults } = clickhouse
  const whileCrashing = async (insert: () => void): Promise<void> => {
    faults.crashesInCommit = () => true
    expectCrash(insert)
    faults.crashesInCommit = () => false
  }
  return {
    insert: (frames, token = TOKEN) => resultOf(() => clickhouse.insert(simulatedFrames(frames), token)),
    find: async (frames) => sorted(clickhouse.find(frames.flat().map(simulatedRow).map(rowKey))),
    rows: async () => sorted(clickhouse.rows),
    hasDeadLetter: async (row) => clickhouse.hasDeadLetter(simulatedLetter(row)),
    insertDeadLetter: async (row, token = TOKEN) =>
      clickhouse.insertDeadLetters([simulatedLetter(row)], token),
    deadLetters: async () => sorted(clickhouse.deadLetters),
    loseRow: (row) => whileCrashing(() => clickhouse.insert(simulatedFrames([[row]]), TOKEN)),
    loseDeadLetter: (row) => whileCrashing(() => clickhouse.insertDeadLetters([simulatedLetter(row)], TOKEN)),
    keepPartOfRejected: async () => void (faults.keepsPartOfRejected = () => true),
    breakTable: async () => void (faults.isTableBroken = true),
    acceptAll: async () => void Object.assign(faults, { isTableBroken: false, acceptsAll: true }),
    age: async (to) => void (time.nowMs = to === 'end' ? WINDOW_MS - 1 : WINDOW_MS),
  }
}

/** There is no response. */
function expectCrash(insert: () => void): void {
  try {
    insert()
  } catch {
    return
  }
  throw new Error('the insert did not crash')
}

const PROJECT = 'p'
/** The tokens that a table remembers when tokens have aged. */
const WINDOW_TOKENS = 3
/** A string that is not JSON is rejected with INCORRECT_DATA, and an invalid pattern with a code that is not listed. */
const RULES = [
  { name: 'json', expression: `length(toString(CAST(message, 'JSON')))` },
  { name: 'pattern', expression: `match('', url)` },
] as const

/** The code of `packages/clickhouse` on a database in a real ClickHouse, with rules for rows. The connection is closed at the end of the test. */
export async function openRealTargets(): Promise<InsertTargets> {
  const clickhouse = await openTestDatabase()
  onTestFinished(() => clickhouse.close())
  const receivedAtMs = Date.now()
  const textOf = ({ id, partition, rejected, projectId = PROJECT }: ScenarioRow): string => {
    const prefix = textPrefix({ projectId, retentionDays: 30 + partition, receivedAtMs })
    const message = rejected === 'poison' ? '{x' : '{}'
    const url = rejected === 'unknown' ? { url: '[' } : {}
    return rowOf({ level: 'info', message, ...url }, id, prefix)
  }
  const letterOf = (row: ScenarioRow): DeadLetter => ({
    code: 'A_CODE',
    reason: 'a reason',
    text: rowAsJson(textOf(row)) ?? '',
  })
  const alter = async (table: string, change: string): Promise<void> => {
    await clickhouse.command({ query: `ALTER TABLE ${table} ${change}` })
  }
  const select = async (expression: string, table: string): Promise<string[]> => {
    const query = `SELECT ${expression} AS id FROM ${table} WHERE project_id = '${PROJECT}'`
    const result = await clickhouse.query({ query, format: 'JSONEachRow' })
    return (await result.json<{ id: string }>()).map(({ id }) => id).toSorted()
  }
  const frameInserter = new FrameInserter(clickhouse, unwatched)
  const targets: InsertTargets = {
    insert: (frames, token = TOKEN) => {
      // As a worker sends them: a batch in blocks, and a row of its own as text.
      const encode = frames.flat().length === 1 ? asText : asBlock
      const encoded = frames.map((rows) => encode(rows.map(textOf)))
      return resultOf(() => frameInserter.insert(encoded, token))
    },
    find: async (frames) => {
      const found = await storedRowFinder(clickhouse, Date.now, unwatched).find(
        frames.flat().map(textOf).map(rowKey),
      )
      return [...found].toSorted()
    },
    rows: () => select('toString(id)', logsTable),
    hasDeadLetter: async (row) => {
      try {
        await deadLettersOf(withoutInserts(clickhouse))
          .prepare([letterOf(row)], randomUUID(), true)
          .run()
        return true
      } catch (error) {
        if (error instanceof NotFoundError) return false
        throw error
      }
    },
    insertDeadLetter: async (row, token = TOKEN) => {
      await deadLettersOf(clickhouse)
        .prepare([letterOf(row)], token, false)
        .run()
    },
    deadLetters: () => select(`JSONExtractString(text, 'id')`, deadLettersTable),
    loseRow: async (row) => {
      await targets.insert([[row]])
      await loseRows(clickhouse, logsTable, PROJECT, `id = '${row.id}'`)
    },
    loseDeadLetter: async (row) => {
      await targets.insertDeadLetter(row)
      await loseRows(clickhouse, deadLettersTable, PROJECT, `text LIKE '%${row.id}%'`)
    },
    keepPartOfRejected: async () => {
      // ClickHouse computes the index of a partition when it writes it. The partitions before it are stored by then.
      for (const { name, expression } of RULES) {
        await alter(logsTable, `DROP CONSTRAINT ${name}`)
        await alter(logsTable, `ADD INDEX ${name} ${expression} TYPE minmax`)
      }
    },
    breakTable: () => alter(logsTable, `ADD CONSTRAINT broken CHECK match('', concat('[', project_id)) >= 0`),
    acceptAll: async () => {
      for (const name of [...RULES.map((rule) => rule.name), 'broken']) {
        await alter(logsTable, `DROP CONSTRAINT IF EXISTS ${name}`)
        await alter(logsTable, `DROP INDEX IF EXISTS ${name}`)
      }
    },
    age: async (to) => {
      const others = to === 'end' ? WINDOW_TOKENS - 1 : WINDOW_TOKENS
      for (const table of [logsTable, deadLettersTable])
        await alter(table, `MODIFY SETTING non_replicated_deduplication_window = ${WINDOW_TOKENS}`)
      for (let i = 0; i < others; i += 1) {
        const other = { id: randomUUID(), partition: 1, projectId: 'another' } as const
        await targets.insert([[other]], randomUUID())
        await targets.insertDeadLetter(other, randomUUID())
      }
    },
  }
  for (const { name, expression } of RULES)
    await alter(logsTable, `ADD CONSTRAINT ${name} CHECK ${expression} >= 0`)
  return targets
}

class NotFoundError extends Error {
  override name = 'NotFoundError'
}

/** What is not found would be inserted. */
function withoutInserts(clickhouse: ClickHouseClient): ClickHouseClient {
  return new Proxy(clickhouse, {
    get: (client, name) => {
      if (name === 'exec') return () => Promise.reject(new NotFoundError())
      const member: unknown = Reflect.get(client, name, client)
      return typeof member === 'function' ? member.bind(client) : member
    },
  })
}

function deadLettersOf(clickhouse: ClickHouseClient): DeadLetters {
  const options = { ...insertOptions, areTokensAtomic: true, wallMs: Date.now }
  return deadLetterWriter({ ...options, client: clickhouse, watch: unwatched })
}
