import { eventually } from '@sluice/harness'
import { compressRows, rowAsJson, rowKey } from '@sluice/rows'
import { validTimestamps } from '@sluice/rows/testing'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { type ClickHouseClient, connectClickHouse } from '../src/client.ts'
import { DeadLetterStore, type StoredDeadLetter } from '../src/dead-letter-store.ts'
import { queryIds, QueryWatch } from '../src/query-watch.ts'
import { FrameInserter } from '../src/row-inserter.ts'
import { deadLettersTable, logsTable } from '../src/tables.ts'
import { countingReads, fillLogs, GRANULE_ROWS } from './read-rows.ts'
import {
  countRows,
  databaseOf,
  loseRows,
  makeRow,
  openTestDatabase,
  select,
  unwatched,
} from './test-database.ts'

const clickhouse = await openTestDatabase()
const store = new DeadLetterStore(clickhouse)
let projectId: string

beforeEach(() => {
  projectId = randomUUID()
})

afterAll(() => clickhouse.close())

const rowOf = (timestamp?: string): string => makeRow({ projectId }, { timestamp })

function objectOf(row: string): Record<string, string> {
  return JSON.parse(rowAsJson(row) ?? '') as Record<string, string>
}

/** Stores a dead letter. A removed one can be stored again: the state of a retry that was interrupted before the removal. */
async function storeLetter(text: string, id: string = randomUUID()): Promise<StoredDeadLetter> {
  await clickhouse.insert({
    table: deadLettersTable,
    values: [{ id, project_id: projectId, failed_at: '2026-11-20 00:00:00', code: 'X', reason: '', text }],
    format: 'JSONEachRow',
    // ClickHouse remembers the block of an earlier insert.
    clickhouse_settings: { insert_deduplication_token: randomUUID() },
  })
  const letter = await store.find(id)
  if (letter === undefined) throw new Error('the dead letter is not stored')
  return letter
}

it('counts the dead letters, in total and of today', async () => {
  const before = await store.count()
  await storeLetter('old')
  await clickhouse.command({
    query: `INSERT INTO ${deadLettersTable} (id, project_id, failed_at, code) SELECT generateUUIDv4(), '${projectId}', now64(3, 'UTC'), 'X'`,
  })
  expect(await store.count()).toEqual({ total: before.total + 2, today: before.today + 1 })
  await store.purge('all')
  expect(await store.count()).toEqual({ total: 0, today: 0 })
})

/** Stores a dead letter with this text, and retries it. Returns why it was rejected. */
async function retry(text: string, itsStore: DeadLetterStore = store): Promise<string | undefined> {
  const [outcome] = await itsStore.retry([await storeLetter(text)])
  return outcome?.rejection
}

const insertRow = (row: string) =>
  new FrameInserter(clickhouse, unwatched).insert([compressRows(row)], randomUUID())
const storedRows = (project: string = projectId) => countRows(clickhouse, logsTable, project)

const allRows = async (): Promise<number> => (await select(clickhouse, `SELECT 1 FROM ${logsTable}`)).length

/** Each takes up to two seconds, because both operators remove the dead letter. */
const RACES = 3

const noSleep = (): Promise<void> => Promise.resolve()

const countBoth = async (): Promise<number> => (await storedRows()) + (await storedRows('another'))

describe('a retry after a retry that was interrupted', () => {
  it.each(validTimestamps.map(([why, text]) => [why, text] as const))(
    'does not insert the row again: %s',
    async (_why, timestamp) => {
      const row = rowOf(timestamp)
      await insertRow(row)
      expect(await retry(rowAsJson(row) ?? '')).toBeUndefined()
      expect(await storedRows()).toBe(1)
    },
  )

  // Each of these is a row that ClickHouse accepts.
  it.each<[what: string, edit: (row: Record<string, string>) => Record<string, unknown>]>([
    ['has no timestamp', (row) => ({ ...row, timestamp: undefined })],
    ['has a timestamp in seconds', (row) => ({ ...row, timestamp: '1795214581' })],
    ['has a timestamp as a number', (row) => ({ ...row, timestamp: 1_795_214_581 })],
    ['has a timestamp in RFC 2822', (row) => ({ ...row, timestamp: '20 Nov 2026 22:43:01 +0100' })],
    ['has its id in uppercase', (row) => ({ ...row, id: row['id']?.toUpperCase() })],
    ['has its id without dashes', (row) => ({ ...row, id: row['id']?.replaceAll('-', '') })],
    ['has another project', (row) => ({ ...row, project_id: 'another' })],
  ])('does not insert the row again if its text %s', async (_what, edit) => {
    const text = JSON.stringify(edit(objectOf(rowOf('2026-11-20T22:43:01.123456789Z'))))
    const before = await countBoth()
    expect(await retry(text)).toBeUndefined()
    expect(await retry(text)).toBeUndefined()
    expect(await countBoth()).toBe(before + 1)
  })
})

it.each([
  ['a timestamp', { timestamp: 'yesterday' }],
  ['a timestamp of the usual form', { timestamp: '2026-99-99 99:99:99.000000' }],
  ['a day of expiry', { expires_on: 'tomorrow' }],
])('reports that ClickHouse rejects %s that is invalid', async (_what, change) => {
  expect(await retry(JSON.stringify({ ...objectOf(rowOf()), ...change }))).toMatch(/^[A-Z_]+ \d+$/)
  expect(await storedRows()).toBe(0)
})

const storedLetters = (): Promise<number> => countRows(clickhouse, deadLettersTable, projectId)
const textOfRow = (): string => rowAsJson(rowOf()) ?? ''

const withoutField = (name: string): string => JSON.stringify({ ...objectOf(rowOf()), [name]: undefined })

const NOT_A_ROW = 'the text is not a JSON object with an id (a UUID) and a project_id'

describe('a dead letter that cannot be looked up', () => {
  it.each<[what: string, makeText: () => string]>([
    ['that is empty', () => ''],
    ['that is not JSON', () => 'not JSON'],
    ['that is null', () => 'null'],
    ['that is an array', () => '[]'],
    ['that is a string', () => '"text"'],
    ['of two rows', () => `${textOfRow()}\n${textOfRow()}`],
    ['without an id', () => withoutField('id')],
    ['without a project', () => withoutField('project_id')],
    ['with a number as project', () => JSON.stringify({ ...objectOf(rowOf()), project_id: 5 })],
    ['with an invalid id', () => JSON.stringify({ ...objectOf(rowOf()), id: 'no uuid' })],
    // All rows without an id would have this one.
    ['with the id zero', () => JSON.stringify({ ...objectOf(rowOf()), id: '0'.repeat(32) })],
  ])('is neither inserted nor removed: one %s', async (_what, makeText) => {
    const letter = await storeLetter(makeText())
    const rowsBefore = await allRows()
    expect(await store.retry([letter])).toEqual([{ id: letter.id, rejection: NOT_A_ROW }])
    expect(await store.find(letter.id)).toEqual(letter)
    expect(await allRows()).toBe(rowsBefore)
  })
})

/** A client whose calls pass through `intercept`, which may throw before or after them. */
function intercepted(
  intercept: (call: { name: string; query: string }, run: () => Promise<unknown>) => Promise<unknown>,
): ClickHouseClient {
  return new Proxy(clickhouse, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (parameters: { query?: string }) =>
        intercept({ name: String(name), query: parameters.query ?? '' }, () =>
          member.call(target, parameters),
        )
    },
  })
}

/** Every lookup of a row finds nothing: a row policy hides it, or a replica lags. */
const hideRows = (): ClickHouseClient =>
  intercepted(async ({ name, query }, run) =>
    name === 'query' && query.includes(`FROM ${logsTable}`) ? { json: async () => [] } : run(),
  )

describe('a dead letter is not removed before its row was found', () => {
  it.each([
    ['on one server: a replacement stores it', false, undefined, [1, 0]],
    ['on a cluster', true, 'inserted, but not found afterwards', [0, 1]],
  ])(
    'if ClickHouse has the token of the retry without the row, %s',
    async (_where, isCluster, rejection, counts) => {
      const letter = await storeLetter(textOfRow())
      await store.retry([letter])
      await loseRows(clickhouse, logsTable, projectId)
      await storeLetter(letter.text, letter.id)
      const client = intercepted(async ({ query }, run) =>
        isCluster && query.includes('system.tables') ? { json: async () => [{ 1: 1 }] } : run(),
      )
      expect(await new DeadLetterStore(client, noSleep).retry([letter])).toEqual([
        { id: letter.id, rejection },
      ])
      expect([await storedRows(), await storedLetters()]).toEqual(counts)
    },
  )

  it('if a row policy hides the row', async () => {
    const letter = await storeLetter(textOfRow())
    expect(await new DeadLetterStore(hideRows(), noSleep).retry([letter])).toEqual([
      { id: letter.id, rejection: 'inserted, but not found afterwards' },
    ])
    expect(await storedLetters()).toBe(1)
    expect(await storedRows()).toBeGreaterThan(0)
  })

  it('if another operator edited its text since it was listed', async () => {
    const letter = await storeLetter(textOfRow())
    const edited = JSON.stringify({ ...objectOf(rowOf()), message: 'edited' })
    await clickhouse.command({
      query: `ALTER TABLE ${deadLettersTable} UPDATE text = {edited: String} WHERE id = {id: UUID}`,
      query_params: { edited, id: letter.id },
      clickhouse_settings: { mutations_sync: '2' },
    })
    await store.retry([letter])
    expect(await storedRows()).toBe(1)
    const found = await store.find(letter.id)
    expect(found).toEqual({ ...letter, text: edited })
    // The edited row has another id, so it is another row. The token of the first row must not make ClickHouse ignore it.
    const inserts: string[] = []
    const noting = intercepted(async ({ query }, run) => {
      if (query.startsWith('INSERT')) inserts.push(query)
      return run()
    })
    if (found !== undefined) await new DeadLetterStore(noting, noSleep).retry([found])
    expect(inserts).toHaveLength(1)
    expect([await storedRows(), await storedLetters()]).toEqual([2, 0])
  })
})

describe('a retry that is killed', () => {
  it.each(['before', 'after'])('%s any of its steps loses and doubles nothing', async (when) => {
    let steps = 0
    for (let killedAt = 1; ; killedAt += 1) {
      projectId = randomUUID()
      const letter = await storeLetter(textOfRow())
      steps = 0
      const killing = intercepted(async (_call, run) => {
        steps += 1
        if (steps > killedAt) throw new Error('killed')
        if (steps < killedAt) return run()
        // A result that is not read would keep its connection.
        if (when === 'after') ((await run()) as { close?: () => void }).close?.()
        throw new Error('killed')
      })
      const outcome = await new DeadLetterStore(killing, noSleep)
        .retry([letter])
        .catch((error: unknown) => error)
      expect((await storedRows()) + (await storedLetters())).toBeGreaterThan(0)
      const [left] = await store.list(projectId, 10)
      if (left !== undefined) await store.retry([left])
      expect([await storedRows(), await storedLetters()]).toEqual([1, 0])
      if (!(outcome instanceof Error)) break
    }
    // The check of the engine, a lookup, the insert, another lookup, and the removal.
    expect(steps).toBeGreaterThanOrEqual(5)
  })
})

describe('two operators who retry the same dead letter', () => {
  let second: ClickHouseClient

  beforeAll(async () => {
    second = connectClickHouse(
      { ...inject('services').clickhouse, database: await databaseOf(clickhouse) },
      { requestTimeoutMs: 20_000, connectionsMax: 1 },
    )
  })

  afterAll(() => second?.close())

  it('store its row once', async () => {
    for (let round = 0; round < RACES; round += 1) {
      projectId = randomUUID()
      const letter = await storeLetter(textOfRow())
      const outcomes = await Promise.all([store.retry([letter]), new DeadLetterStore(second).retry([letter])])
      expect([await storedRows(), await storedLetters()]).toEqual([1, 0])
      for (const { rejection } of outcomes.flat())
        expect([undefined, 'another retry of it is running']).toContain(rejection)
    }
  })

  it('learn that another retry is running', async () => {
    const letter = await storeLetter(textOfRow())
    const queryId = queryIds.deadLetterRetry(letter.id)
    // It stands for a slow insert.
    const running = second.query({ query: 'SELECT sleep(3)', format: 'JSONEachRow', query_id: queryId })
    await eventually(async () => {
      const watch = new QueryWatch({ client: clickhouse, isCluster: false, monotonicMs: () => 0 })
      expect(await watch.isRunning(queryId)).toBe(true)
    })
    expect(await store.retry([letter])).toEqual([
      { id: letter.id, rejection: 'another retry of it is running' },
    ])
    expect([await storedRows(), await storedLetters()]).toEqual([0, 1])
    await (await running).text()
  })
})

it('keeps the dead letter of a row that has expired: ClickHouse rejects the row', async () => {
  const day = new Date().toISOString().slice(0, 10)
  const text = JSON.stringify({ ...objectOf(rowOf()), expires_on: day })
  expect(await retry(text)).toBe('VIOLATED_CONSTRAINT 469')
  expect(await storedRows()).toBe(0)
  const letters = await store.list(projectId, 10)
  expect(letters.map((letter) => letter.text)).toEqual([text])
})

it('reads one granule of a large table', async () => {
  projectId = 'demo-7'
  const row = rowOf(new Date(Date.now() - 86_400_000).toISOString())
  await insertRow(row)
  await fillLogs(clickhouse, 1_000_000, Date.now(), rowKey(row).expiresOn)
  const total = { readRows: 0 }
  expect(
    await retry(rowAsJson(row) ?? '', new DeadLetterStore(countingReads(clickhouse, total))),
  ).toBeUndefined()
  expect(total.readRows).toBeGreaterThan(0)
  expect(total.readRows).toBeLessThan(2 * GRANULE_ROWS)
})
