import { eventually } from '@sluice/harness'
import { compressRows, rowAsJson, rowKey } from '@sluice/rows'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { type ClickHouseClient, readRows } from '../src/client.ts'
import { DeadLetterStore, type LateInserts, type StoredDeadLetter } from '../src/dead-letter-store.ts'
import { queryIds, QueryWatch } from '../src/query-watch.ts'
import { FrameInserter } from '../src/row-inserter.ts'
import { deadLettersTable, logsTable } from '../src/tables.ts'
import {
  connectAgain,
  countRows,
  fillLogs,
  GRANULE_ROWS,
  loseRows,
  makeRow,
  openTestDatabase,
  unwatched,
} from './test-database.ts'

const clickhouse = await openTestDatabase()
const store = new DeadLetterStore(clickhouse)
let projectId: string

beforeEach(() => {
  projectId = randomUUID()
})

afterAll(() => clickhouse.close())

const textOfRow = (timestamp?: string): string => rowAsJson(makeRow({ projectId }, { timestamp })) ?? ''

/** The text of a row with other fields. */
const textWith = (fields: Readonly<Record<string, unknown>>): string =>
  JSON.stringify({ ...(JSON.parse(textOfRow('2026-11-20T22:43:01.123456789Z')) as object), ...fields })

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
  const [outcome] = await itsStore.retry([await storeLetter(text)], unread)
  return outcome?.rejection
}

const storedRows = (project: string = projectId) => countRows(clickhouse, logsTable, project)
const storedLetters = (): Promise<number> => countRows(clickhouse, deadLettersTable, projectId)
const countBoth = async (): Promise<number> => (await storedRows()) + (await storedRows('another'))
/** No reader has asked what is complete. */
const unread: LateInserts = (insert) => insert(() => 0)
const atNoon: LateInserts = (insert) => insert(() => Date.parse('2026-11-20T12:00:00.001Z'))
const noSleep = (): Promise<void> => Promise.resolve()

it.each([
  ['before a time that may be complete, then', '2026-11-20 10:00:00.000', '2026-11-20 12:00:00.001'],
  ['after it, as before', '2026-11-20 13:00:00.000', '2026-11-20 13:00:00.000'],
  ['at no valid time, then', 'yesterday', '2026-11-20 12:00:00.001'],
])('a row that was received %s', async (_when, receivedAt, expected) => {
  const letter = await storeLetter(textWith({ received_at: receivedAt }))
  expect(await store.retry([letter], atNoon)).toEqual([{ id: letter.id, rejection: undefined }])
  const query = `SELECT toString(received_at) AS receivedAt FROM ${logsTable} WHERE project_id = {projectId: String}`
  expect(await readRows(clickhouse, query, { projectId })).toEqual([{ receivedAt: expected }])
})

// Each of these is a row that ClickHouse accepts.
it.each<[what: string, fields: Readonly<Record<string, unknown>>]>([
  ['is unchanged', {}],
  ['has no timestamp', { timestamp: undefined }],
  ['has a timestamp as a number', { timestamp: 1_795_214_581 }],
  ['has a timestamp in RFC 2822', { timestamp: '20 Nov 2026 22:43:01 +0100' }],
  ['has its id in uppercase', { id: randomUUID().toUpperCase() }],
  ['has its id without dashes', { id: randomUUID().replaceAll('-', '') }],
  ['has another project', { project_id: 'another' }],
])('a retry after an interrupted one does not insert the row again if its text %s', async (_what, fields) => {
  const [text, before] = [textWith(fields), await countBoth()]
  for (let times = 0; times < 2; times += 1) expect(await retry(text)).toBeUndefined()
  expect(await countBoth()).toBe(before + 1)
})

const NOT_A_ROW = 'the text is not a JSON object with an id (a UUID) and a project_id'
const today = new Date().toISOString().slice(0, 10)

it.each<[what: string, makeText: () => string, rejection: string | RegExp]>([
  ['with an invalid timestamp', () => textWith({ timestamp: '2026-99-99 99:99:99.000000' }), /^[A-Z_]+ \d+$/],
  ['with an invalid day of expiry', () => textWith({ expires_on: 'tomorrow' }), /^[A-Z_]+ \d+$/],
  ['that has expired', () => textWith({ expires_on: today }), 'VIOLATED_CONSTRAINT 469'],
  ['that is not JSON', () => 'not JSON', NOT_A_ROW],
  ['of two rows', () => `${textOfRow()}\n${textOfRow()}`, NOT_A_ROW],
  ['without an id', () => textWith({ id: undefined }), NOT_A_ROW],
  ['with a number as project', () => textWith({ project_id: 5 }), NOT_A_ROW],
  ['with an invalid id', () => textWith({ id: 'no uuid' }), NOT_A_ROW],
  // All rows without an id would have this one.
  ['with the id zero', () => textWith({ id: '0'.repeat(32) }), NOT_A_ROW],
])('a row %s is not inserted, and its dead letter stays', async (_what, makeText, rejection) => {
  const letter = await storeLetter(makeText())
  const [outcome] = await store.retry([letter], unread)
  expect(outcome?.rejection).toMatch(rejection)
  expect(await store.list(projectId, 10)).toEqual([letter])
  expect(await storedRows()).toBe(0)
})

/** A client whose calls pass through `intercept`, which may throw before or after them. */
const intercepted = (
  intercept: (query: string, run: () => Promise<unknown>) => Promise<unknown>,
): ClickHouseClient =>
  new Proxy(clickhouse, {
    get: (target, name) => {
      const member = Reflect.get(target, name, target) as (parameters: unknown) => Promise<unknown>
      return (parameters: { query?: string }) =>
        intercept(parameters.query ?? '', () => member.call(target, parameters))
    },
  })

it('a row is not sent if its time of receipt is too old after the lookup', async () => {
  const letter = await storeLetter(textOfRow())
  let isLate = false
  const client = intercepted((query, run) => {
    isLate ||= query.startsWith(`SELECT 1 FROM ${logsTable}`)
    return run()
  })
  const late: LateInserts = (insert) =>
    insert(() => {
      if (!isLate) return 0
      throw new Error('suspended')
    })
  await expect(new DeadLetterStore(client).retry([letter], late)).rejects.toThrow('suspended')
  expect([await storedRows(), await storedLetters()]).toEqual([0, 1])
})

describe('a dead letter is not removed before its row was found', () => {
  // On one server, a replacement stores it.
  it.each([
    ['one server', undefined, [1, 0]],
    ['a cluster', 'inserted, but not found afterwards', [0, 1]],
  ])('if ClickHouse has the token of the retry without the row, on %s', async (where, rejection, counts) => {
    const letter = await storeLetter(textOfRow())
    await store.retry([letter], unread)
    await loseRows(clickhouse, logsTable, projectId)
    await storeLetter(letter.text, letter.id)
    const client = intercepted(async (query, run) =>
      where === 'a cluster' && query.includes('system.tables') ? { json: async () => [{ 1: 1 }] } : run(),
    )
    expect(await new DeadLetterStore(client, noSleep).retry([letter], unread)).toEqual([
      { id: letter.id, rejection },
    ])
    expect([await storedRows(), await storedLetters()]).toEqual(counts)
  })

  it('if another operator edited its text since it was listed', async () => {
    const letter = await storeLetter(textOfRow())
    const edited = textWith({ message: 'edited' })
    await clickhouse.command({
      query: `ALTER TABLE ${deadLettersTable} UPDATE text = {edited: String} WHERE id = {id: UUID}`,
      query_params: { edited, id: letter.id },
      clickhouse_settings: { mutations_sync: '2' },
    })
    await store.retry([letter], unread)
    expect(await storedRows()).toBe(1)
    const found = await store.find(letter.id)
    expect(found).toEqual({ ...letter, text: edited })
    // The edited row has another id, so it is another row.
    if (found !== undefined) await store.retry([found], unread)
    expect([await storedRows(), await storedLetters()]).toEqual([2, 0])
  })
})

it.each(['before', 'after'])(
  'a retry that is killed %s any of its steps loses and doubles nothing',
  async (when) => {
    let steps = 0
    for (let killedAt = 1; ; killedAt += 1) {
      projectId = randomUUID()
      const letter = await storeLetter(textOfRow())
      steps = 0
      const killing = intercepted(async (_query, run) => {
        steps += 1
        if (steps > killedAt) throw new Error('killed')
        if (steps < killedAt) return run()
        // A result that is not read would keep its connection.
        if (when === 'after') ((await run()) as { close?: () => void }).close?.()
        throw new Error('killed')
      })
      const outcome = await new DeadLetterStore(killing, noSleep)
        .retry([letter], unread)
        .catch((error: unknown) => error)
      expect((await storedRows()) + (await storedLetters())).toBeGreaterThan(0)
      const [left] = await store.list(projectId, 10)
      if (left !== undefined) await store.retry([left], unread)
      expect([await storedRows(), await storedLetters()]).toEqual([1, 0])
      if (!(outcome instanceof Error)) break
    }
    // The check of the engine, a lookup, the insert, another lookup, and the removal.
    expect(steps).toBeGreaterThanOrEqual(5)
  },
)

it('two operators who retry the same dead letter store its row once, or learn that another retry is running', async () => {
  await using second = await connectAgain(clickhouse)
  const letter = await storeLetter(textOfRow())
  const outcomes = await Promise.all([
    store.retry([letter], unread),
    new DeadLetterStore(second).retry([letter], unread),
  ])
  expect([await storedRows(), await storedLetters()]).toEqual([1, 0])
  const RUNNING = 'another retry of it is running'
  for (const { rejection } of outcomes.flat()) expect([undefined, RUNNING]).toContain(rejection)

  projectId = randomUUID()
  const waiting = await storeLetter(textOfRow())
  const queryId = queryIds.deadLetterRetry(waiting.id)
  // It stands for a slow insert.
  const running = second.query({ query: 'SELECT sleep(3)', format: 'JSONEachRow', query_id: queryId })
  const watch = new QueryWatch({ client: clickhouse, isCluster: false, monotonicMs: () => 0 })
  await eventually(async () => expect(await watch.isRunning(queryId)).toBe(true))
  expect(await store.retry([waiting], unread)).toEqual([{ id: waiting.id, rejection: RUNNING }])
  expect([await storedRows(), await storedLetters()]).toEqual([0, 1])
  await (await running).text()
})

it('reads at most two granules of a large table', async () => {
  projectId = 'demo-7'
  const row = makeRow({ projectId }, { timestamp: new Date(Date.now() - 86_400_000).toISOString() })
  await new FrameInserter(clickhouse, unwatched).insert([compressRows(row)], randomUUID())
  await fillLogs(clickhouse, 1_000_000, Date.now(), rowKey(row).expiresOn)
  await using limited = await connectAgain(clickhouse, { rowsReadMax: 2 * GRANULE_ROWS })
  expect(await retry(rowAsJson(row) ?? '', new DeadLetterStore(limited))).toBeUndefined()
})
