import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../support.ts'
import { isClean, readStored } from './audit.ts'
import { Cluster } from './cluster.ts'
import { awaitInserts, isEmpty } from './drain.ts'
import { Journal } from './journal.ts'
import { Load } from './load.ts'
import { pause } from './pause.ts'
import { seededRandom } from './random.ts'
import { settle } from './settle.ts'

const LOCK_DURATION_MS = 2_000
/** Long enough to freeze a worker that has fetched chunks before it claims them. */
const BATCH_WAIT_MS = 1_500
/** A lock, and two checks of the queue for chunks whose lock has run out. */
const TAKEOVER_DEADLINE_MS = 40_000
const TEST_DEADLINE_MS = 90_000

let dataDir: string
let cluster: Cluster
let redis: RedisConnection

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-frozen-'))
  cluster = await Cluster.start({
    dataDir,
    apis: 1,
    workers: 2,
    workerEnvironment: {
      LOCK_DURATION_MS: String(LOCK_DURATION_MS),
      BATCH_WAIT_MS: String(BATCH_WAIT_MS),
    },
  })
  redis = connectRedis(cluster.services.redisUrl, { failFast: false })
})

afterAll(async () => {
  redis?.disconnect()
  await cluster?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

/** Only the first worker runs, so it is the one that gets the chunks. */
beforeEach(async () => {
  cluster.link('worker-1', 'clickhouse').heal()
  cluster.victim('worker-1').process.kill('SIGCONT')
  await cluster.victim('worker-2').retire()
  await Promise.all(['api-1', 'worker-1'].map((name) => cluster.victim(name).revive()))
})

/** Sends for a moment, and waits for the answers. */
async function send(label: string): Promise<Journal> {
  const journal = new Journal(label)
  const { apiUrls, apiKey } = cluster
  const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(1), entriesPerSecond: 400 })
  load.start()
  await pause(400)
  await load.stop()
  expect(journal.count('acknowledged')).toBeGreaterThan(50)
  return journal
}

async function claimedChunks(): Promise<number> {
  return (await redis.keys(cluster.names.chunkKey('*'))).length
}

async function activeJobs(): Promise<number> {
  return redis.llen(cluster.names.jobKey('active'))
}

async function untilStored(journal: Journal): Promise<void> {
  await eventually(TAKEOVER_DEADLINE_MS, async () => {
    const stored = await readStored(cluster.services.clickhouse, journal.label)
    expect(stored.size).toBe(journal.count('acknowledged'))
  })
}

/** Freezes the first worker, and resolves when the second has delivered everything in its place. */
async function freezeUntilTakenOver(journal: Journal): Promise<void> {
  const frozenAtMs = performance.now()
  cluster.victim('worker-1').process.kill('SIGSTOP')
  await cluster.victim('worker-2').revive()
  await untilStored(journal)
  await pause(frozenAtMs + 2 * LOCK_DURATION_MS - performance.now())
}

async function thawAndCompare(journal: Journal): Promise<void> {
  cluster.victim('worker-1').process.kill('SIGCONT')
  // Whatever the thawed worker still wants to do, it does at once, or after its own wait for a batch.
  await pause(2 * BATCH_WAIT_MS)
  const { findings, queue } = await settle(cluster, journal, TAKEOVER_DEADLINE_MS)
  expect(queue).toSatisfy(isEmpty)
  expect(findings).toSatisfy(isClean)
  for (const victim of cluster.victims) expect(victim.unexpectedExits).toEqual([])
}

describe('a worker frozen past its lock, and thawed after another has taken over, doubles nothing', () => {
  it('when it had not claimed its chunks yet', { timeout: TEST_DEADLINE_MS }, async () => {
    const before = await claimedChunks()
    const journal = await send('unclaimed')
    await eventually(BATCH_WAIT_MS, async () => expect(await activeJobs()).toBeGreaterThan(0))
    cluster.victim('worker-1').process.kill('SIGSTOP')
    expect(await claimedChunks()).toBe(before)
    await freezeUntilTakenOver(journal)
    await thawAndCompare(journal)
  })

  it(
    'when its insert was on the way, and arrives after the other one',
    { timeout: TEST_DEADLINE_MS },
    async () => {
      const link = cluster.link('worker-1', 'clickhouse')
      link.hold('request')
      const journal = await send('on-the-way')
      await eventually(5_000, async () => expect(link.heldBytes('request')).toBeGreaterThan(0))
      await pause(200)
      await freezeUntilTakenOver(journal)
      link.resume()
      await pause(500)
      await awaitInserts(cluster.services.clickhouse, 10_000)
      await thawAndCompare(journal)
    },
  )

  it('when its insert had landed, and it did not get the answer', { timeout: TEST_DEADLINE_MS }, async () => {
    const link = cluster.link('worker-1', 'clickhouse')
    link.hold('answer')
    const journal = await send('landed')
    await eventually(5_000, async () => expect(link.heldBytes('answer')).toBeGreaterThan(0))
    await freezeUntilTakenOver(journal)
    link.reset()
    link.resume()
    await thawAndCompare(journal)
  })
})
