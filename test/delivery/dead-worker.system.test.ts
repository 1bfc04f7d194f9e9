import { eventually, pause } from '@sluice/harness'
import { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { isExactlyOnce } from '@sluice/harness/settle'
import type { App } from '@sluice/local'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { report } from './support.ts'

const WORKERS = 6
const CHUNKS_PER_BATCH = 300
/** Long enough to kill the worker while ClickHouse has not got its inserts. */
const INSERT_DELAY_MS = 4_000
const LOCK_DURATION_MS = 2_000
/** How long the records of a released batch are kept. */
const RELEASED_TTL_MS = 300_000

let fleet: Fleet
let victim: App

beforeAll(async () => {
  fleet = await Fleet.start({
    environment: { LOCK_DURATION_MS: String(LOCK_DURATION_MS), BATCH_WAIT_MS: '500' },
  })
  // The first worker has the turn, and keeps it while it is not busy.
  victim = await fleet.startWorker()
  for (let worker = 1; worker < WORKERS; worker += 1) await fleet.startWorker()
})

afterAll(() => fleet?.stop())

/** The remaining time of all records of batches and their chunks, ms. -1 for a record that does not expire. */
async function recordTtls(): Promise<number[]> {
  const [names] = fleet.names
  if (names === undefined) return []
  const keys = (
    await Promise.all([names.chunkKey('*'), names.batchKey('*')].map((key) => fleet.redis.keys(key)))
  ).flat()
  return Promise.all(keys.map((key) => fleet.redis.pttl(key)))
}

async function batches(): Promise<number> {
  const [names] = fleet.names
  return names === undefined ? 0 : (await fleet.redis.keys(names.batchKey('*'))).length
}

it('the batches of a killed worker are recovered once each, and their records are released', async () => {
  const journal = new Journal('dead-worker')
  fleet.gate.insertDelayMs = INSERT_DELAY_MS
  for (const claimed of [1, 2]) {
    await fleet.add(journal, CHUNKS_PER_BATCH, 2)
    await eventually(async () => expect(await batches()).toBe(claimed))
  }
  expect(await fleet.queued()).toEqual({ waiting: 0, active: 2 * CHUNKS_PER_BATCH })
  await victim.process.stop({ signal: 'SIGKILL' })
  const killedAtMs = performance.now()
  fleet.gate.insertDelayMs = 0
  // Keeps the others busy. A busy worker loses the turn, so several of them fetch chunks of the two batches.
  await fleet.feed(journal, { chunksPerS: 100, rowsPerChunk: 1, durationMs: 8_000 })
  await eventually(async () => expect(await fleet.queued()).toEqual({ waiting: 0, active: 0 }))
  report(`recovered ${Math.round(performance.now() - killedAtMs)} ms after the kill`)
  // Another worker that has a chunk of the batch in hand would report it now.
  await pause(1_000)
  const recovered = fleet.logged('recovering a batch').map(({ batchId }) => batchId)
  expect(new Set(recovered).size).toBe(2)
  expect(recovered).toHaveLength(2)
  const ttls = await recordTtls()
  expect(ttls.length).toBeGreaterThan(2 * CHUNKS_PER_BATCH + 2)
  for (const ttl of ttls) expect(ttl).toSatisfy((ms: number) => ms >= 0 && ms <= RELEASED_TTL_MS)
  const settlement = await fleet.settle(journal)
  expect(settlement).toSatisfy(isExactlyOnce)
  expect(settlement.stored).toMatchObject({ rows: journal.size, deadLetters: 0 })
}, 120_000)
