import { beforeEach, describe, expect, it } from 'vitest'
import { InsertHealth } from '../src/insert-health.ts'
import { observeQueries, observeSteps, type ObservedClickHouse } from '../src/observed-clickhouse.ts'
import { WorkerCounts } from '../src/worker-counts.ts'
import { TestClock } from './support/test-clock.ts'

const lost = new Error('connection lost')

let health: InsertHealth
let calls: string[]
/** The step that gets no answer. */
let silent: string | undefined
let observed: ObservedClickHouse

async function step(name: string): Promise<void> {
  calls.push(name)
  if (name === silent) throw lost
}

beforeEach(() => {
  health = new InsertHealth(new TestClock(), { giveUpMs: 10_000, probeIntervalMs: 5_000 })
  calls = []
  silent = undefined
  observed = observeSteps(health, new WorkerCounts(), {
    checkClock: () => step('check the clock'),
    frameInserter: {
      insert: (frames, token, queryId) => step(`insert ${frames.length} ${token} ${queryId}`),
      isRunning: async (token) => token === 'running',
    },
    storedRows: {
      find: async () => {
        await step('look up')
        return new Set(['a'])
      },
    },
  })
})

describe('without an answer', () => {
  it.each([
    ['check the clock', () => observed.beforeAttempt()],
    ['look up', () => observed.storedRows.find([])],
    ['insert 0 token undefined', () => observed.frameInserter.insert([], 'token')],
  ])('a worker is failing: %s', async (name, run) => {
    silent = name
    await expect(run()).rejects.toBe(lost)
    expect(health.failure).toBeDefined()
  })
})

it('an insert that succeeds ends the failure, and the steps before it do not', async () => {
  silent = 'look up'
  await expect(observed.storedRows.find([])).rejects.toBe(lost)
  silent = undefined
  await observed.beforeAttempt()
  expect(await observed.storedRows.find([])).toEqual(new Set(['a']))
  expect(health.failure).toBeDefined()
  await observed.frameInserter.insert([Buffer.alloc(0)], 'token', 'query')
  expect(health.failure).toBeUndefined()
  expect(calls.at(-1)).toBe('insert 1 token query')
})

it('a running insert is reported', async () => {
  expect(await observed.frameInserter.isRunning?.('running')).toBe(true)
  expect(await observed.frameInserter.isRunning?.('ended')).toBe(false)
})

describe('an insert of nothing', () => {
  it('is preceded by the check of the clock', async () => {
    await observed.insertNothing()
    expect(calls).toEqual(['check the clock', 'insert 0 probe undefined'])
  })

  it('is not sent while the clock is unknown', async () => {
    silent = 'check the clock'
    await expect(observed.insertNothing()).rejects.toBe(lost)
    expect(calls).toEqual(['check the clock'])
  })
})

it('reports the end of each query, and changes no result', async () => {
  let ended = 0
  const watch = observeQueries(
    {
      run: (queryId, send) => send({ signal: AbortSignal.abort(queryId), progressed: () => undefined }),
      isRunning: async (id) => id === 'a',
    },
    () => (ended += 1),
  )
  expect(await watch.run('a', async ({ signal }) => signal.reason as string)).toBe('a')
  expect(ended).toBe(1)
  await expect(watch.run('b', () => Promise.reject(lost))).rejects.toBe(lost)
  expect(ended).toBe(2)
  expect(await Promise.all(['a', 'b'].map((id) => watch.isRunning(id)))).toEqual([true, false])
})
