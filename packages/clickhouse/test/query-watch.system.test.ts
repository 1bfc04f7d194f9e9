import { eventually, FaultProxy, pause } from '@sluice/harness'
import { compressRows } from '@sluice/rows'
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it, type TestContext } from 'vitest'
import { type ClickHouseClient, connectClickHouse } from '../src/client.ts'
import { LostQueryError, queryIds, QueryWatch, type QueryWatcher, watchLimits } from '../src/query-watch.ts'
import { FrameInserter, RowInserter } from '../src/row-inserter.ts'
import { StoredRows } from '../src/stored-rows.ts'
import { logsTable } from '../src/tables.ts'
import {
  countRows,
  databaseOf,
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

const makeFrame = (projectId: string, message?: string): Buffer =>
  compressRows(makeRow({ projectId }, message === undefined ? {} : { message }))

function rowInserterOf(client: ClickHouseClient, watch: QueryWatcher): RowInserter {
  return new RowInserter({
    frameInserter: new FrameInserter(client, watch),
    storedRows: new StoredRows(client, Date.now, watch),
    ...insertOptions,
  })
}

/** What a worker has, behind a proxy, and a batch of one row. */
interface Worker {
  readonly proxy: FaultProxy
  readonly client: ClickHouseClient
  readonly watch: QueryWatch
  readonly rowInserter: RowInserter
  readonly projectId: string
  readonly token: string
  readonly frame: Buffer
  /** The number of rows of its project. */
  readonly stored: () => Promise<number>
}

/** Concurrent tests must register what happens at their end with their context. */
type AtEnd = TestContext['onTestFinished']

async function openWorker(
  of: ClickHouseClient,
  atEnd: AtEnd,
  { requestTimeoutMs = 60_000, connectionsMax = 4 } = {},
): Promise<Worker> {
  const proxy = await FaultProxy.open(inject('services').clickhouse.url)
  const access = { ...inject('services').clickhouse, url: proxy.url, database: await databaseOf(of) }
  const client = connectClickHouse(access, { requestTimeoutMs, connectionsMax })
  const questions = connectClickHouse(access, {
    requestTimeoutMs: watchLimits.questionTimeoutMs,
    connectionsMax: 4,
    reusesConnections: false,
  })
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
  const [projectId, token] = [randomUUID(), randomUUID()]
  return {
    proxy,
    client,
    watch,
    rowInserter: rowInserterOf(client, watch),
    projectId,
    token,
    frame: makeFrame(projectId),
    stored: () => countRows(of, logsTable, projectId),
  }
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
    expect(await insert).toBe('stored')
    expect(performance.now() - startMs).toBeGreaterThan(SLOW_MS - 500)
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
    const other = rowInserterOf(slow, unwatched).prepare([frame], token, true)
    await expect(other.run()).rejects.toMatchObject({ code: '216' })
    await expect(attempts.run()).rejects.toMatchObject({ name: 'StillRunningError' })
    expect(await runningIds(queryIds.rows(token))).toHaveLength(1)
    await eventually(async () => expect(await attempts.run()).toBe('stored'))
    expect(await stored()).toBe(1)
  })

  it('does not make the consumption of its token wait', async ({ onTestFinished }) => {
    const { rowInserter, frame, token, stored } = await openWorker(slow, onTestFinished)
    const insert = rowInserter.prepare([frame], token, false).run()
    await isEventuallyRunning(queryIds.rows(token))
    const consumption = rowInserter.consumeToken([frame], token, () => undefined)
    await isEventuallyRunning(queryIds.consumedToken(token))
    expect(await Promise.all([insert, consumption])).toEqual(['stored', 'stored'])
    expect(await stored()).toBe(1)
  })

  it('makes ClickHouse reject a large copy before it is sent, and leaves connections that work', async ({
    onTestFinished,
  }) => {
    const { rowInserter, client, projectId, frame, token, stored } = await openWorker(slow, onTestFinished)
    const running = rowInserter.prepare([frame], token, false).run()
    await isEventuallyRunning(queryIds.rows(token))
    // Random digits stay large when they are compressed.
    const large = Array.from({ length: 64 }, () => makeFrame(projectId, randomBytes(100_000).toString('hex')))
    const copy = new FrameInserter(client, unwatched)
    for (let attempt = 0; attempt < 3; attempt += 1)
      await expect(copy.insert(large, token)).rejects.toMatchObject({ code: '216' })
    expect(await running).toBe('stored')
    expect(await stored()).toBe(1)
  })
})

/** Runs attempts like the worker, until one succeeds. @returns the errors of the others, and how long it took */
async function retry(attempt: () => Promise<unknown>): Promise<{ errors: unknown[]; tookMs: number }> {
  const startMs = performance.now()
  const errors: unknown[] = []
  for (;;) {
    try {
      await attempt()
      return { errors, tookMs: performance.now() - startMs }
    } catch (error) {
      errors.push(error)
      await pause(100)
    }
  }
}

describe.concurrent('silent connections, while new ones work', { timeout: TEST_MAX_MS }, () => {
  it('are given up, and an insert that never arrived is stored once on a new one', async ({
    onTestFinished,
  }) => {
    // With one connection, the next insert must use the connection that this insert leaves open.
    const worker = await openWorker(fast, onTestFinished, { connectionsMax: 1 })
    const { proxy, rowInserter, watch, projectId, frame, token, stored } = worker
    await rowInserter.prepare([makeFrame(projectId)], randomUUID(), false).run()
    expect(proxy.silence()).toBeGreaterThan(0)
    const attempts = rowInserter.prepare([frame], token, false)
    const notReady = eventually(async () => expect(watch.readiness.ready).toBe(false))
    const { errors, tookMs } = await retry(() => attempts.run())
    await notReady
    expect(errors).toEqual([expect.any(LostQueryError)])
    expect(tookMs).toBeLessThan(20_000)
    expect(watch.readiness).toEqual({ ready: true, reasons: [] })
    expect(watch.isAlive).toBe(true)
    expect(await stored()).toBe(2)
  })

  it('are given up, and an insert that ClickHouse runs meanwhile is stored once', async ({
    onTestFinished,
  }) => {
    const { proxy, rowInserter, watch, frame, token, stored } = await openWorker(slow, onTestFinished)
    const attempts = rowInserter.prepare([frame], token, false)
    const reasons = new Set<string>()
    const timer = setInterval(() => watch.readiness.reasons.forEach((reason) => reasons.add(reason)), 50)
    onTestFinished(() => clearInterval(timer))
    const result = retry(() => attempts.run())
    await isEventuallyRunning(queryIds.rows(token))
    proxy.silence()
    const { errors, tookMs } = await result
    // It was given up when ClickHouse no longer ran it.
    expect(errors).toEqual([expect.any(LostQueryError)])
    expect(tookMs).toBeGreaterThan(SLOW_MS)
    expect(tookMs).toBeLessThan(SLOW_MS + 20_000)
    expect([...reasons]).toEqual([expect.stringContaining('does not run queries that wait')])
    expect(await stored()).toBe(1)
  })

  it('are given up by lookups', async ({ onTestFinished }) => {
    const { proxy, rowInserter, frame, token } = await openWorker(fast, onTestFinished)
    await rowInserter.prepare([frame], token, false).run()
    // The response of an insert is read in the background, so its connection may not be free yet.
    await rowInserter.findStored([frame])
    proxy.silence()
    const { errors, tookMs } = await retry(() => rowInserter.findStored([frame]))
    expect(errors).toEqual([expect.objectContaining({ message: expect.stringContaining('LostQueryError') })])
    expect(tookMs).toBeLessThan(20_000)
  })
})

describe.concurrent('a ClickHouse that is silent on new connections too', { timeout: TEST_MAX_MS }, () => {
  it('is reported within 10 s, and an insert is stored once when it responds again', async ({
    onTestFinished,
  }) => {
    const { proxy, rowInserter, watch, frame, token, stored } = await openWorker(fast, onTestFinished)
    proxy.hold('both')
    const startMs = performance.now()
    const attempts = rowInserter.prepare([frame], token, false)
    let result: unknown
    void attempts.run().then(
      (value) => (result = value),
      (error: unknown) => (result = error),
    )
    await eventually(async () =>
      expect(watch.readiness.reasons).toEqual(['ClickHouse does not answer on new connections']),
    )
    expect(performance.now() - startMs).toBeLessThan(10_000)
    expect(watch.isAlive).toBe(true)
    // It is not given up: ClickHouse has not said that it does not run it.
    await pause(5_000)
    expect(result).toBeUndefined()
    // The connections that were made in the meantime stay silent. New ones work.
    proxy.silence()
    proxy.resume()
    await eventually(async () => expect(result).toBeInstanceOf(LostQueryError))
    expect(await attempts.run()).toBe('stored')
    expect(watch.readiness).toEqual({ ready: true, reasons: [] })
    expect(await stored()).toBe(1)
  })
})
