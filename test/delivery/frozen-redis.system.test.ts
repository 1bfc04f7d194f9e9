import { eventually, pause } from '@sluice/harness'
import { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { isExactlyOnce } from '@sluice/harness/settle'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { report } from './support.ts'

const LOCK_DURATION_MS = 1_000
const FROZEN_MS = 3 * LOCK_DURATION_MS
/** Longer than it takes to freeze Redis while the inserts are in flight. */
const INSERT_DELAY_MS = 1_500
const FREEZES = 2
/** More than one worker can insert, so that both are busy. */
const CHUNKS_PER_S = 200
const FED_MS = 12_000

let fleet: Fleet

beforeAll(async () => {
  fleet = await Fleet.start({
    environment: { LOCK_DURATION_MS: String(LOCK_DURATION_MS), BATCH_WAIT_MS: '200', BATCH_ROWS_MAX: '200' },
  })
  for (let worker = 0; worker < 2; worker += 1) await fleet.startWorker()
})

afterAll(() => fleet?.stop())

it('while Redis is frozen for longer than the locks of two workers with batches in flight, nothing is lost or doubled', async () => {
  const journal = new Journal('frozen-redis')
  const { redis } = fleet.services.processes
  fleet.gate.insertDelayMs = INSERT_DELAY_MS
  const feeding = fleet.feed(journal, { chunksPerS: CHUNKS_PER_S, rowsPerChunk: 2, durationMs: FED_MS })
  for (let freeze = 0; freeze < FREEZES; freeze += 1) {
    // Both slots of both workers.
    await eventually(async () => expect(fleet.gate.delayedInserts).toBe(4))
    redis.kill('SIGSTOP')
    await pause(FROZEN_MS)
    redis.kill('SIGCONT')
  }
  const resumedMs = performance.now()
  await feeding
  await eventually(async () => expect(await fleet.queued()).toEqual({ waiting: 0, active: 0 }))
  report(
    `${journal.size} entries stored ${Math.round(performance.now() - resumedMs)} ms after the last freeze, ` +
      `with ${fleet.logged('recovering a batch').length} recoveries`,
  )
  const settlement = await fleet.settle(journal)
  expect(settlement).toSatisfy(isExactlyOnce)
  expect(settlement.stored).toMatchObject({ rows: journal.size, deadLetters: 0 })
}, 150_000)
