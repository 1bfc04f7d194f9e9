import { beforeEach, describe, expect, it } from 'vitest'
import { ClickHouseError } from '@sluice/clickhouse'
import { InsertHealth } from '../src/insert-health.ts'
import { workerLimits } from '../src/limits.ts'
import { type ObservedQueries, observeQueries, WorkerEvents } from '../src/worker-events.ts'
import { insertErrors } from './support/chunks.ts'
import { TestClock } from './support/test-clock.ts'

let clock: TestClock
let health: InsertHealth
let queries: ObservedQueries
/** What the next query does. */
let send: () => Promise<void>

beforeEach(async () => {
  clock = new TestClock()
  const events = new WorkerEvents()
  health = new InsertHealth(clock, events)
  queries = observeQueries(events, clock, {
    checkClock: () => send(),
    frameInserter: { insert: () => send(), isRunning: async () => false },
    storedRows: { find: () => send().then(() => new Set()) },
  })
  await clock.pass(1_000)
})

const insert = (itsSend: () => Promise<void>): Promise<void> => {
  send = itsSend
  return queries.frameInserter.insert([], 'token')
}
const succeed = (): Promise<void> => insert(() => Promise.resolve())
/** An insert that fails after some time. */
const fail = async (error: Error, tookMs = 0): Promise<void> => {
  const failing = insert(async () => {
    await clock.sleep(tookMs)
    throw error
  })
  await expect(clock.settle(failing)).rejects.toBe(error)
}
const isHealthy = (): boolean => health.fetchMax(100) === Number.POSITIVE_INFINITY
const lost = new Error('connection lost')

describe('a worker', () => {
  it('is healthy, but for the time from a failed insert to the next success', async () => {
    for (let round = 0; round < 2; round += 1) {
      expect(isHealthy()).toBe(true)
      expect([health.failure, health.lastError]).toEqual([undefined, undefined])
      await fail(lost)
      expect(health.lastError).toBe('Error: connection lost')
      await clock.pass(3_999)
      expect(isHealthy()).toBe(false)
      expect(health.failure).toBe('no insert has succeeded for 3 s')
      await fail(insertErrors.transient)
      // Without the message of ClickHouse, which may quote rows.
      expect(health.lastError).toBe('ClickHouse 252 TOO_MANY_PARTS')
      expect(health.giveUpSignal.aborted).toBe(false)
      await succeed()
    }
  })

  it('gives up when no insert has succeeded for a time, counted from the start of the first that failed', async () => {
    await fail(lost, 4_000)
    await clock.pass(5_999)
    await fail(lost)
    expect(health.giveUpSignal.aborted).toBe(false)
    await clock.pass(1)
    // Without another insert, nothing is known that was not known before.
    expect(health.giveUpSignal.aborted).toBe(false)
    await fail(insertErrors.transient)
    expect(health.giveUpSignal.aborted).toBe(true)
    expect(health.failure).toBe('no insert has succeeded for 10 s; its chunks are returned')
  })

  it('that has given up is healthy after a success, and can give up again', async () => {
    await fail(lost, workerLimits.giveUpMs)
    const first = health.giveUpSignal
    await succeed()
    expect(isHealthy()).toBe(true)
    expect(health.giveUpSignal.aborted).toBe(false)
    expect(first.aborted).toBe(true)
    await clock.pass(1)
    await fail(lost, workerLimits.giveUpMs)
    expect(health.giveUpSignal.aborted).toBe(true)
  })

  it('is not failing because of an insert that began before another one succeeded', async () => {
    const slow = fail(lost, workerLimits.giveUpMs)
    await clock.pass(1)
    await succeed()
    await slow
    expect(isHealthy()).toBe(true)
    expect(health.giveUpSignal.aborted).toBe(false)
  })

  it('is failing because of an insert that began when another one had succeeded', async () => {
    await succeed()
    await fail(lost)
    expect(isHealthy()).toBe(false)
  })

  it.each(['too_big', 'poison', 'unknown'] as const)(
    'is neither healthy nor failing after an error about the rows: %s',
    async (failure) => {
      await fail(insertErrors[failure], workerLimits.giveUpMs)
      expect(isHealthy()).toBe(true)
      expect(health.hasSucceededSince(0)).toBe(false)
      await fail(lost)
      await fail(insertErrors[failure])
      expect(isHealthy()).toBe(false)
    },
  )

  it('is not failing because ClickHouse still runs an earlier attempt', async () => {
    const type = 'QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING'
    await fail(new ClickHouseError({ message: 'm', code: '216', type }), workerLimits.giveUpMs)
    expect(isHealthy()).toBe(true)
  })
})

describe.each([
  ['a check of the clock', () => queries.beforeAttempt()],
  ['a lookup', () => queries.storedRows.find([])],
  ['the check before an insert of nothing', () => queries.insertNothing()],
])('%s', (_name, query) => {
  const failQuery = async (error: Error): Promise<void> => {
    send = async () => {
      throw error
    }
    await expect(query()).rejects.toBe(error)
  }

  it('counts as a failed insert without a response of ClickHouse', async () => {
    await failQuery(lost)
    expect(isHealthy()).toBe(false)
    await clock.pass(workerLimits.giveUpMs)
    await failQuery(lost)
    expect(health.giveUpSignal.aborted).toBe(true)
  })

  it('changes nothing if ClickHouse rejects it', async () => {
    await failQuery(insertErrors.transient)
    expect(isHealthy()).toBe(true)
  })
})

it('a query before an insert does not show that inserts succeed', async () => {
  await fail(lost)
  send = () => Promise.resolve()
  await queries.beforeAttempt()
  expect(await queries.storedRows.find([])).toEqual(new Set())
  expect(isHealthy()).toBe(false)
  expect(health.hasSucceededSince(0)).toBe(false)
  await queries.insertNothing()
  expect(isHealthy()).toBe(true)
})

describe('a failing worker', () => {
  beforeEach(() => fail(lost))

  it('fetches nothing while it holds chunks, whose inserts show whether it can insert', () => {
    expect(health.fetchMax(1)).toBe(0)
  })

  it('fetches one chunk at a time as a probe, at intervals', async () => {
    expect(health.fetchMax(0)).toBe(1)
    health.probing()
    expect(health.fetchMax(0)).toBe(0)
    await clock.pass(workerLimits.probeIntervalMs - 1)
    expect(health.fetchMax(0)).toBe(0)
    await clock.pass(1)
    expect(health.fetchMax(0)).toBe(1)
    expect(health.fetchMax(1)).toBe(0)
  })
})

describe('the last success', () => {
  it('is compared with a time', async () => {
    expect(health.hasSucceededSince(0)).toBe(false)
    await succeed()
    await clock.pass(500)
    expect(health.hasSucceededSince(1_000)).toBe(true)
    expect(health.hasSucceededSince(1_001)).toBe(false)
    await fail(lost)
    expect(health.hasSucceededSince(1_000)).toBe(true)
  })
})
