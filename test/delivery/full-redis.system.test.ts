import { eventually } from '@sluice/harness'
import { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { isExactlyOnce } from '@sluice/harness/settle'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { report } from './support.ts'

const CHUNKS = 3_000
const ROWS_PER_CHUNK = 5
/** The limit that is set: below what Redis uses without any job. */
const MEMORY_BYTES = 1024 * 1024

let fleet: Fleet

beforeAll(async () => {
  fleet = await Fleet.start({ environment: { LOCK_DURATION_MS: '1000', BATCH_ROWS_MAX: '1000' } })
})

afterAll(() => fleet?.stop())

it('everything that is queued is stored while Redis is above its memory limit, also the batches of a dead worker', async () => {
  const journal = new Journal('full-redis')
  await fleet.add(journal, CHUNKS, ROWS_PER_CHUNK)
  await fleet.redis.config('SET', 'maxmemory', String(MEMORY_BYTES))
  await expect(fleet.redis.set('x', '1')).rejects.toThrow('OOM')
  fleet.gate.insertDelayMs = 1_000
  const startedMs = performance.now()
  const victim = await fleet.startWorker()
  await eventually(async () => expect(fleet.gate.delayedInserts).toBe(2))
  await victim.process.stop({ signal: 'SIGKILL' })
  fleet.gate.insertDelayMs = 0
  const survivor = await fleet.startWorker()
  await eventually(async () => expect(await fleet.queued()).toEqual({ waiting: 0, active: 0 }))
  report(`${journal.size} entries stored within ${Math.round(performance.now() - startedMs)} ms`)
  expect((await fetch(`${survivor.opsUrl}/readyz`)).status).toBe(200)
  expect(fleet.logged('recovering a batch').length).toBeGreaterThanOrEqual(2)
  const settlement = await fleet.settle(journal)
  expect(settlement).toSatisfy(isExactlyOnce)
  expect(settlement.stored).toMatchObject({ rows: CHUNKS * ROWS_PER_CHUNK, deadLetters: 0 })
}, 120_000)
