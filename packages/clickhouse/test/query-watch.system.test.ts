import { eventually, FaultProxy, pause } from '@sluice/harness'
import { compressRows, rowKey } from '@sluice/rows'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it, type TestContext } from 'vitest'
import { type ClickHouseClient, connectClickHouse } from '../src/client.ts'
import { LostQueryError, queryIds, QueryWatch, watchLimits } from '../src/query-watch.ts'
import { FrameInserter, RowInserter } from '../src/row-inserter.ts'
import { storedRowFinder } from '../src/stored-rows.ts'
import { logsTable } from '../src/tables.ts'
import {
  connectAgain,
  countRows,
  insertOptions,
  makeRow,
  openTestDatabase,
  select,
  unwatched,
} from './test-database.ts'

/** `sleepEachRow` sleeps for at most 3 s per block. ClickHouse computes equal expressions once, so each column needs another time. */
const SLEEPS_S = [2.8, 2.81, 2.82, 2.83]
/** An insert of one row into `slow` takes this long: longer than until a query that ClickHouse does not run is given up. */
const SLOW_MS = 1_000 * SLEEPS_S.reduce((sum, sleepS) => sum + sleepS)
/** On a busy machine. */
const TEST_MAX_MS = 90_000

const fast = await openTestDatabase()
/** A row that is inserted here takes SLOW_MS. */
const slow = await openTestDatabase()

beforeAll(async () => {
  for (const [index, sleepS] of SLEEPS_S.entries()) {
    const column = `slow${index} UInt8 DEFAULT sleepEachRow(${sleepS})`
    await slow.command({ query: `ALTER TABLE ${logsTable} ADD COLUMN ${column}` })
  }
})

afterAll(async () => {
  await fast.close()
  await slow.close()
})

/** What a worker has, behind a proxy, and a batch of one row. */
async function openWorker(
  of: ClickHouseClient,
  // Concurrent tests must register what happens at their end with their context.
  atEnd: TestContext['onTestFinished'],
  { requestTimeoutMs = 60_000, connectionsMax = 4 } = {},
) {
  const proxy = await FaultProxy.open(inject('services').clickhouse.url)
  const client = await connectAgain(of, { url: proxy.url, requestTimeoutMs, connectionsMax })
  const questions = connectClickHouse(
    { ...inject('services').clickhouse, url: proxy.url, database: 'default' },
    { requestTimeoutMs: watchLimits.questionTimeoutMs, connectionsMax: 4, reusesConnections: false },
  )
  atEnd(async () => {
    await proxy.down()
    await client.close()
    await questions.close()
  })
  const watch = new QueryWatch({
    client: questions,
    isCluster: false,
    monotonicMs: () => performance.now(),
  })
  const rowInserter = new RowInserter({
    frameInserter: new FrameInserter(client, watch),
    storedRows: storedRowFinder(client, Date.now, watch),
    ...insertOptions,
  })
  const [projectId, token] = [randomUUID(), randomUUID()]
  const row = makeRow({ projectId })
  const frame = compressRows(row)
  const stored = (): Promise<number> => countRows(of, logsTable, projectId)
  return { proxy, client, watch, rowInserter, token, row, frame, stored }
}

/** The ids of Sluice's queries that ClickHouse is running. */
async function runningIds(prefix: string): Promise<string[]> {
  const query = 'SELECT query_id AS id FROM system.processes WHERE startsWith(query_id, {prefix: String})'
  return (await select<{ id: string }>(fast, query, { prefix })).map(({ id }) => id)
}

const isEventuallyRunning = (queryId: string): Promise<void> =>
  eventually(async () => expect(await runningIds(queryId)).toEqual([queryId]))

describe.concurrent('a slow insert', { timeout: TEST_MAX_MS }, () => {
  it('is not given up and not sent again, and the worker stays ready', async ({ onTestFinished }) => {
    const { rowInserter, watch, token, frame, stored } = await openWorker(slow, onTestFinished)
    const startMs = performance.now()
    const insert = rowInserter.prepare([frame], token, false).run()
    const reasons: string[] = []
    while (performance.now() - startMs < SLOW_MS - 1_000) {
      await pause(250)
      reasons.push(...watch.readiness.reasons)
      expect((await runningIds(queryIds.rows(token))).length).toBeLessThanOrEqual(1)
    }
    await insert
    expect(reasons).toEqual([])
    expect(await stored()).toBe(1)
  })

  it('goes on when its client has given it up, and is the only one, and its token holds', async ({
    onTestFinished,
  }) => {
    const worker = await openWorker(slow, onTestFinished, { requestTimeoutMs: 1_000 })
    const { rowInserter, frame, token, stored } = worker
    const attempts = rowInserter.prepare([frame], token, false)
    await expect(attempts.run()).rejects.toThrow('Timeout error.')
    await expect(attempts.run()).rejects.toMatchObject({ name: 'StillRunningError' })
    // Another worker recovers the batch, and cannot ask. ClickHouse itself rejects the copy.
    const copy = new FrameInserter(slow, unwatched).insert([frame], token)
    await expect(copy).rejects.toMatchObject({ code: '216' })
    expect(await runningIds(queryIds.rows(token))).toHaveLength(1)
    await eventually(() => attempts.run())
    expect(await stored()).toBe(1)
  })
})

/** Runs attempts like the worker, until one succeeds. @returns the errors of the others */
async function retry(attempt: () => Promise<unknown>): Promise<unknown[]> {
  const errors: unknown[] = []
  for (;;) {
    try {
      await attempt()
      return errors
    } catch (error) {
      errors.push(error)
      await pause(100)
    }
  }
}

describe.concurrent('silent connections, while new ones work', { timeout: TEST_MAX_MS }, () => {
  it('are given up, and an insert that never arrived is stored once on a new one, and a lookup finds it', async ({
    onTestFinished,
  }) => {
    // With one connection, the next insert must use the connection that this insert leaves open.
    const worker = await openWorker(fast, onTestFinished, { connectionsMax: 1 })
    const { proxy, rowInserter, watch, row, frame, token, stored } = worker
    await rowInserter.findStored([rowKey(row)])
    expect(proxy.silence()).toBeGreaterThan(0)
    const attempts = rowInserter.prepare([frame], token, false)
    expect(await retry(() => attempts.run())).toEqual([expect.any(LostQueryError)])
    expect(watch.readiness).toEqual({ ready: true, reasons: [] })
    expect(watch.isAlive).toBe(true)
    proxy.silence()
    const lookupError = expect.objectContaining({
      message: expect.stringContaining('LostQueryError'),
    }) as unknown
    expect(await retry(() => rowInserter.findStored([rowKey(row)]))).toEqual([lookupError])
    expect(await stored()).toBe(1)
  })

  it('are given up, and an insert that ClickHouse runs meanwhile is stored once', async ({
    onTestFinished,
  }) => {
    const { proxy, rowInserter, frame, token, stored } = await openWorker(slow, onTestFinished)
    const attempts = rowInserter.prepare([frame], token, false)
    const errors = retry(() => attempts.run())
    await isEventuallyRunning(queryIds.rows(token))
    proxy.silence()
    // It was given up when ClickHouse no longer ran it.
    expect(await errors).toEqual([expect.any(LostQueryError)])
    expect(await stored()).toBe(1)
  })
})

describe.concurrent('a ClickHouse that is silent on new connections too', { timeout: TEST_MAX_MS }, () => {
  it('is reported, and an insert is stored once when it responds again', async ({ onTestFinished }) => {
    const { proxy, rowInserter, watch, frame, token, stored } = await openWorker(fast, onTestFinished)
    proxy.hold('both')
    const attempts = rowInserter.prepare([frame], token, false)
    const result = attempts.run().catch((error: unknown) => error)
    const reasons = ['ClickHouse does not answer on new connections']
    await eventually(async () => expect(watch.readiness.reasons).toEqual(reasons))
    expect(watch.isAlive).toBe(true)
    // The connections that were made in the meantime stay silent. New ones work.
    proxy.silence()
    proxy.resume()
    expect(await result).toBeInstanceOf(LostQueryError)
    await attempts.run()
    expect(watch.readiness).toEqual({ ready: true, reasons: [] })
    expect(await stored()).toBe(1)
  })
})
