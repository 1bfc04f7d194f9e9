import { eventually, pause, seededRandom } from '@sluice/harness'
import { readStored } from '@sluice/harness/audit'
import { awaitInserts } from '@sluice/harness/drain'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { isExactlyOnce } from '@sluice/harness/settle'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ChaosInstallation } from './chaos-installation.ts'

const LOCK_DURATION_MS = 1_000
/** Long enough to freeze a worker between fetching and claiming its chunks. */
const BATCH_WAIT_MS = 1_000
const TEST_DEADLINE_MS = 90_000

let installation: ChaosInstallation
let redis: RedisConnection

beforeAll(async () => {
  installation = await ChaosInstallation.start({
    apis: 1,
    workers: 2,
    workerEnvironment: {
      LOCK_DURATION_MS: String(LOCK_DURATION_MS),
      BATCH_WAIT_MS: String(BATCH_WAIT_MS),
    },
  })
  redis = connectRedis(installation.services.redisUrl, { failFast: false })
})

afterAll(async () => {
  redis?.disconnect()
  await installation?.stop()
})

/** Only the first worker runs, and therefore fetches all chunks. */
beforeEach(async () => {
  installation.link('worker-1', 'clickhouse').heal()
  installation.victim('worker-1').process.kill('SIGCONT')
  await installation.victim('worker-2').retire()
  await Promise.all(['api-1', 'worker-1'].map((name) => installation.victim(name).revive()))
})

/** Sends for a moment, and waits for the answers. */
async function send(label: string): Promise<Journal> {
  const journal = new Journal(label)
  const { apiUrls, apiKey } = installation
  const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(1), entriesPerSecond: 400 })
  load.start()
  await pause(400)
  await load.stop()
  expect(journal.count('acknowledged')).toBeGreaterThan(50)
  return journal
}

async function claimedChunks(): Promise<number> {
  return (await redis.keys(installation.names.chunkKey('*'))).length
}

async function activeJobs(): Promise<number> {
  return redis.llen(installation.names.jobKey('active'))
}

async function untilStored(journal: Journal): Promise<void> {
  await eventually(async () => {
    const stored = await readStored(installation.services.clickhouse, journal.label)
    expect(stored.size).toBe(journal.count('acknowledged'))
  })
}

/** Freezes the first worker, and resolves when the second one has delivered everything instead. */
async function freezeUntilTakenOver(journal: Journal): Promise<void> {
  const frozenAtMs = performance.now()
  installation.victim('worker-1').process.kill('SIGSTOP')
  await installation.victim('worker-2').revive()
  await untilStored(journal)
  await pause(frozenAtMs + 2 * LOCK_DURATION_MS - performance.now())
}

async function thawAndCompare(journal: Journal): Promise<void> {
  installation.victim('worker-1').process.kill('SIGCONT')
  // The thawed worker acts immediately, or after its wait for a batch.
  await pause(2 * BATCH_WAIT_MS)
  expect(await installation.settle(journal)).toSatisfy(isExactlyOnce)
  for (const victim of installation.victims) expect(victim.unexpectedExits).toEqual([])
}

describe('a worker that is frozen for longer than its lock, and thawed after the takeover, duplicates nothing', () => {
  it('if it had not claimed its chunks', { timeout: TEST_DEADLINE_MS }, async () => {
    const before = await claimedChunks()
    const journal = await send('unclaimed')
    await eventually(async () => expect(await activeJobs()).toBeGreaterThan(0))
    installation.victim('worker-1').process.kill('SIGSTOP')
    expect(await claimedChunks()).toBe(before)
    await freezeUntilTakenOver(journal)
    await thawAndCompare(journal)
  })

  it(
    'if its insert was in flight, and arrives after that of the other worker',
    { timeout: TEST_DEADLINE_MS },
    async () => {
      const link = installation.link('worker-1', 'clickhouse')
      link.hold('request')
      const journal = await send('on-the-way')
      await eventually(async () => expect(link.heldBytes('request')).toBeGreaterThan(0))
      await pause(200)
      await freezeUntilTakenOver(journal)
      link.resume()
      await pause(500)
      await awaitInserts(installation.services.clickhouse)
      await thawAndCompare(journal)
    },
  )

  it('if its insert was stored, but the answer did not arrive', { timeout: TEST_DEADLINE_MS }, async () => {
    const link = installation.link('worker-1', 'clickhouse')
    link.hold('answer')
    const journal = await send('landed')
    await eventually(async () => expect(link.heldBytes('answer')).toBeGreaterThan(0))
    await freezeUntilTakenOver(journal)
    link.reset()
    link.resume()
    await thawAndCompare(journal)
  })
})
