import { createLogger } from '@sluice/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { Retrier } from '../src/retrier.ts'
import { ShardProgress } from '../src/shard-progress.ts'
import { TestClock } from './support/test-clock.ts'

const stuck = new Promise<never>(() => undefined)

let clock: TestClock
let heldChunks: number
let progress: ShardProgress

beforeEach(() => {
  clock = new TestClock()
  heldChunks = 1
  progress = new ShardProgress(clock, () => heldChunks)
})

/** Lets seconds pass. In each, the loop of the shard fetches nothing. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    await clock.pass(1_000)
    progress.fetched(false)
  }
}

describe('the time without progress', () => {
  it('counts from the last step that ended, while chunks are in hand', async () => {
    await pass(5)
    expect(progress.stalledMs).toBe(5_000)
    await progress.track('claim', Promise.resolve())
    await clock.pass(0)
    expect(progress.stalledMs).toBe(0)
    await progress.track('loaded', Promise.reject(new Error('no'))).catch(() => undefined)
    await pass(2)
    expect(progress.stalledMs).toBe(2_000)
    heldChunks = 0
    progress.fetched(false)
    expect(progress.stalledMs).toBe(0)
  })

  it('counts from the last fetch that ended, whatever else happens', async () => {
    for (let second = 0; second < 5; second += 1) {
      await clock.pass(1_000)
      progress.alive()
    }
    expect(progress.stalledMs).toBe(5_000)
  })

  it.each(['claim', 'claimed', 'recovering', 'loaded', 'stored', 'requeue', 'fail'])(
    'counts from the beginning of the step %s, although others end',
    async (name) => {
      void progress.track(name, stuck)
      for (let second = 0; second < 5; second += 1) {
        await pass(1)
        progress.alive()
      }
      expect(progress.stalledMs).toBe(5_000)
    },
  )

  it('does not count from the beginning of an insert by parts, since it has many steps', async () => {
    void progress.track('rejected', stuck)
    for (let second = 0; second < 5; second += 1) {
      await pass(1)
      progress.alive()
    }
    expect(progress.stalledMs).toBe(0)
    await pass(2)
    expect(progress.stalledMs).toBe(2_000)
  })

  it('does not count before an external reason', async () => {
    void progress.track('stored', stuck)
    await pass(5)
    progress.excuse()
    expect(progress.stalledMs).toBe(0)
    await pass(2)
    expect(progress.stalledMs).toBe(2_000)
  })
})

describe('an attempt of a retrier', () => {
  const logger = createLogger('test', 'silent')
  const observed = (): Pick<Retrier, 'retry'> =>
    progress.observeRetrier(
      new Retrier({ logger, signal: new AbortController().signal, clock, random: () => 0 }),
    )

  it('is progress when it succeeds', async () => {
    await pass(5)
    expect(await observed().retry('failed', () => Promise.resolve(7))).toBe(7)
    expect(progress.stalledMs).toBe(0)
  })

  it('is an external reason when it fails, also for the step that retries', async () => {
    const retrying = observed().retry('failed', async () => {
      await clock.sleep(4_000)
      throw new Error('no')
    })
    void progress.track('claimed', retrying)
    await pass(60)
    expect(progress.stalledMs).toBeLessThan(10_000)
  })
})

it('describes what the shard does', async () => {
  for (const name of ['stored', 'claimed', 'claimed']) {
    void progress.track(name, stuck)
    await pass(1)
  }
  expect(progress.snapshot).toEqual({
    heldChunks: 1,
    steps: { stored: 1, claimed: 2 },
    oldestStepMs: 3_000,
    silentMs: 3_000,
    sinceFetchMs: 0,
  })
})
