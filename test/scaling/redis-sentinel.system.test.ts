import { eventually, pause, seededRandom } from '@sluice/harness'
import { audit, isClean } from '@sluice/harness/audit'
import { awaitInserts, drainQueue, isEmpty } from '@sluice/harness/drain'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { Supervisor } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { durable, PASSWORD, queryServer, startRedisServer, type TestServer } from './redis-servers.ts'
import { type ScaledInstallation, startScaledInstallation } from './scaled-installation.ts'
import { TestSentinels } from './test-sentinels.ts'

const PREFIX = 'sentinel'
const SENTINEL_PASSWORD = 'secret-of-the-sentinels'
const DRAIN_DEADLINE_MS = 30_000
const configuration = [...durable, 'repl-diskless-sync-delay 0']

let supervisor: Supervisor
let master: TestServer
let replica: TestServer
let sentinels: TestSentinels
let installation: ScaledInstallation

/** @throws unless all Sentinels know each other and the replica, and the replica is in sync */
async function requireFormed(replicaPort: number): Promise<void> {
  await sentinels.requireFormed(1)
  const info = await queryServer(replicaPort, (redis) => redis.info('replication'))
  if (!info.includes('master_link_status:up'))
    throw new Error('the replica is not connected to its master yet')
}

beforeAll(async () => {
  supervisor = await Supervisor.open()
  master = await startRedisServer(supervisor, 'master', configuration)
  replica = await startRedisServer(supervisor, 'replica', [
    ...configuration,
    `replicaof 127.0.0.1 ${master.port}`,
  ])
  sentinels = await TestSentinels.start(supervisor, master.port, {
    password: SENTINEL_PASSWORD,
    failoverTimeoutMs: 5_000,
  })
  await eventually(20_000, () => requireFormed(replica.port))
  installation = await startScaledInstallation({
    supervisor,
    redisUrl: sentinels.url,
    prefix: PREFIX,
    workers: 1,
    environment: { REDIS_SENTINEL_PASSWORD: SENTINEL_PASSWORD },
    tuning: { sentinelPassword: SENTINEL_PASSWORD },
  })
  await installation.startWorkers()
})

afterAll(async () => {
  installation?.redis.disconnect()
  await supervisor?.stop({ force: true })
})

const loadOf = (journal: Journal): Load =>
  new Load({
    journal,
    apiUrls: [installation.apiUrl],
    apiKey: installation.apiKey,
    random: seededRandom(7),
    entriesPerSecond: 200,
  })

/** Drains the queue of the current master, and compares what was acknowledged with what is stored. */
async function expectExactlyOnce(...journals: readonly Journal[]): Promise<void> {
  const url = `redis://:${PASSWORD}@127.0.0.1:${await sentinels.primaryPort()}`
  expect(await drainQueue(url, queueNames(PREFIX), DRAIN_DEADLINE_MS)).toSatisfy(isEmpty)
  await awaitInserts(installation.clickhouse, DRAIN_DEADLINE_MS)
  for (const journal of journals) {
    const { findings } = await audit(installation.clickhouse, journal)
    expect(findings).toSatisfy(isClean)
    expect(journal.count('acknowledged')).toBeGreaterThan(100)
  }
}

/** Sends for a second. */
async function send(label: string): Promise<Journal> {
  const journal = new Journal(label)
  const load = loadOf(journal)
  load.start()
  await pause(1_000)
  await load.stop()
  return journal
}

/** Changes the master while entries are sent, and waits until the API is ready with the new one. */
async function failOver(change: () => Promise<void>, to: TestServer): Promise<void> {
  const load = loadOf(new Journal('meanwhile'))
  load.start()
  await pause(500)
  await change()
  await eventually(15_000, async () => expect(await sentinels.primaryPort()).toBe(to.port))
  await pause(500)
  await load.stop()
  await eventually(10_000, async () =>
    expect((await fetch(`${installation.api.opsUrl}/readyz`)).status).toBe(200),
  )
}

// Entries that are sent during the change are not checked: some may be lost, as docs/scaling.md explains.
it('uses the new master after a failover by command, and after the master has crashed', async () => {
  expect(await sentinels.primaryPort()).toBe(master.port)
  const first = await send('first')
  await expectExactlyOnce(first)

  await failOver(async () => {
    await sentinels.failOver()
    // Until the old master is demoted, it accepts writes that will be lost.
    await eventually(15_000, async () =>
      expect(await queryServer(master.port, (redis) => redis.info('replication'))).toContain('role:slave'),
    )
  }, replica)
  const second = await send('second')
  await expectExactlyOnce(first, second)

  await eventually(20_000, () => requireFormed(master.port))
  await failOver(() => replica.process.stop({ signal: 'SIGKILL' }), master)
  const third = await send('third')
  await expectExactlyOnce(first, second, third)
}, 90_000)
