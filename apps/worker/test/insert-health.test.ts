import { beforeEach, describe, expect, it } from 'vitest'
import { ClickHouseError } from '@sluice/clickhouse'
import { InsertHealth } from '../src/insert-health.ts'
import { workerLimits } from '../src/limits.ts'
import { observeQueries, WorkerEvents } from '../src/worker-events.ts'
import { insertErrors } from './support/chunks.ts'
import { TestClock } from './support/test-clock.ts'

const { giveUpMs, probeIntervalMs } = workerLimits

let clock: TestClock
let health: InsertHealth
let queries: ReturnType<typeof observeQueries>
/** What the next query does. */
let send: () => Promise<void>

beforeEach(async () => {
  clock = new TestClock()
  const events = new WorkerEvents()
  health = new InsertHealth(clock, events)
  queries = observeQueries(events, clock, {
    beforeAttempt: () => send(),
    frameInserter: { insert: () => send(), isRunning: async () => false },
    storedRows: { find: () => send().then(() => new Set()) },
  })
  await clock.pass(1_000)
})

const insert = (): Promise<void> => queries.frameInserter.insert([], 'token')
const succeed = (query: () => Promise<unknown> = insert): Promise<unknown> => {
  send = () => Promise.resolve()
  return query()
}
/** A query that fails after some time. */
const fail = async (error: Error, tookMs = 0, query: () => Promise<unknown> = insert): Promise<void> => {
  send = async () => {
    await clock.sleep(tookMs)
    throw error
  }
  await expect(clock.settle(query())).rejects.toBe(error)
}
const isHealthy = (): boolean => health.fetchMax(100) === Number.POSITIVE_INFINITY
const hasGivenUp = (): boolean => health.giveUpSignal.aborted
const lost = new Error('connection lost')
const stillRunning = new ClickHouseError({
  message: 'm',
  code: '216',
  type: 'QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING',
})

it('a worker is healthy, but for the time from a failed insert to the next success', async () => {
  for (let round = 0; round < 2; round += 1) {
    expect([isHealthy(), health.failure, health.lastError]).toEqual([true, undefined, undefined])
    await fail(lost)
    expect([isHealthy(), health.lastError]).toEqual([false, 'Error: connection lost'])
    await clock.pass(3_999)
    expect(health.failure).toBe('no insert has succeeded for 3 s: Error: connection lost')
    await fail(insertErrors.transient)
    // Without the message of ClickHouse, which may quote rows.
    expect(health.lastError).toBe('ClickHouse 252 TOO_MANY_PARTS')
    expect(hasGivenUp()).toBe(false)
    await succeed()
  }
})

it('a worker gives up when no insert has succeeded since the start of the first that failed, until one succeeds', async () => {
  for (let round = 0; round < 2; round += 1) {
    await fail(lost, 4_000)
    await clock.pass(giveUpMs - 4_001)
    await fail(lost)
    await clock.pass(1)
    // Without another insert, nothing is known that was not known before.
    expect(hasGivenUp()).toBe(false)
    await fail(insertErrors.transient)
    expect(hasGivenUp()).toBe(true)
    expect(health.failure).toBe(
      'no insert has succeeded for 10 s, its chunks are returned: ClickHouse 252 TOO_MANY_PARTS',
    )
    const { giveUpSignal } = health
    await succeed()
    expect([isHealthy(), hasGivenUp(), giveUpSignal.aborted]).toEqual([true, false, true])
    await clock.pass(1)
  }
})

it('a failed insert counts if it began when another one had succeeded, and not if it began before', async () => {
  const slow = fail(lost, giveUpMs)
  await clock.pass(1)
  await succeed()
  await slow
  expect([isHealthy(), hasGivenUp()]).toEqual([true, false])
  await succeed()
  await fail(lost)
  expect(isHealthy()).toBe(false)
})

it.each([insertErrors.too_big, insertErrors.poison, insertErrors.unknown, stillRunning])(
  'a worker is neither healthy nor failing after an error about the rows, or while an attempt still runs: %s',
  async (error) => {
    await fail(error, giveUpMs)
    expect([isHealthy(), health.hasSucceededSince(0)]).toEqual([true, false])
    await fail(lost)
    await fail(error)
    expect(isHealthy()).toBe(false)
  },
)

it.each([
  ['a check of the clock', () => queries.beforeAttempt()],
  ['a lookup', () => queries.storedRows.find([])],
  ['the check before an insert of nothing', () => queries.insertNothing()],
])('%s counts as a failed insert if it gets no response of ClickHouse', async (_name, query) => {
  await fail(insertErrors.transient, 0, query)
  expect(isHealthy()).toBe(true)
  await fail(lost, 0, query)
  expect(isHealthy()).toBe(false)
  await clock.pass(giveUpMs)
  await fail(lost, 0, query)
  expect(hasGivenUp()).toBe(true)
})

it('a query before an insert does not show that inserts succeed, and an insert of nothing does', async () => {
  await fail(lost)
  await succeed(() => queries.beforeAttempt())
  await succeed(() => queries.storedRows.find([]))
  expect([isHealthy(), health.hasSucceededSince(0)]).toEqual([false, false])
  await succeed(() => queries.insertNothing())
  expect(isHealthy()).toBe(true)
})

describe('a failing worker', () => {
  it('fetches one chunk at a time as a probe, at intervals, and nothing while it holds chunks', async () => {
    await fail(lost)
    expect([health.fetchMax(0), health.fetchMax(1)]).toEqual([1, 0])
    health.probing()
    await clock.pass(probeIntervalMs - 1)
    expect(health.fetchMax(0)).toBe(0)
    await clock.pass(1)
    expect([health.fetchMax(0), health.fetchMax(1)]).toEqual([1, 0])
  })

  it('knows its last success', async () => {
    await succeed()
    await fail(lost)
    expect([health.hasSucceededSince(1_000), health.hasSucceededSince(1_001)]).toEqual([true, false])
  })
})
