import { freePort, Supervisor } from '@sluice/local'
import { redisNames } from '@sluice/schema'
import type { Redis } from 'ioredis'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { compare, isClean, readStored } from '../chaos/audit.ts'
import { awaitInserts, drainQueue, isEmpty } from '../chaos/drain.ts'
import { Journal } from '../chaos/journal.ts'
import { Load } from '../chaos/load.ts'
import { seededRandom } from '../chaos/random.ts'
import { eventually } from '../support.ts'
import { type Installation, install } from './installation.ts'
import { ask, durable, PASSWORD, startRedisServer, type TestServer } from './redis-servers.ts'

const SENTINELS = 3
const MASTER = 'sluice'
const PREFIX = 'sentinel'
const SENTINEL_PASSWORD = 'secret-of-the-sentinels'
const DRAIN_DEADLINE_MS = 30_000
const configuration = [...durable, 'repl-diskless-sync-delay 0']

let supervisor: Supervisor
let master: TestServer
let replica: TestServer
let sentinelPorts: number[]
let sluice: Installation

/** Asks a Sentinel. */
const askSentinel = <T>(port: number, question: (redis: Redis) => Promise<T>): Promise<T> =>
  ask(port, question, {
    password: SENTINEL_PASSWORD,
    commandTimeout: 1_000,
    retryStrategy: () => null,
    enableReadyCheck: false,
  })

async function startSentinel(name: string): Promise<number> {
  const port = await freePort()
  await startRedisServer(
    supervisor,
    name,
    [
      `port ${port}`,
      `requirepass ${SENTINEL_PASSWORD}`,
      `sentinel monitor ${MASTER} 127.0.0.1 ${master.port} 2`,
      `sentinel auth-pass ${MASTER} ${PASSWORD}`,
      `sentinel down-after-milliseconds ${MASTER} 1000`,
      `sentinel failover-timeout ${MASTER} 5000`,
    ],
    {
      port,
      args: ['--sentinel'],
      isReady: async () => (await askSentinel(port, (redis) => redis.ping())) === 'PONG',
    },
  )
  return port
}

/** Which port the Sentinels lead to. */
const masterPort = async (): Promise<number> => {
  const [port = 0] = sentinelPorts
  const address = await askSentinel(port, (redis) =>
    redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER),
  )
  return Number((address as string[])[1])
}

/** @throws until a majority knows of each other and of the replica, and that has all */
async function requireFormed(replicaPort: number): Promise<void> {
  for (const port of sentinelPorts) {
    const [sentinels, replicas] = await askSentinel(port, (redis) =>
      Promise.all(
        ['SENTINELS', 'REPLICAS'].map((what) => redis.call('SENTINEL', what, MASTER) as Promise<unknown[]>),
      ),
    )
    if (sentinels?.length !== SENTINELS - 1 || replicas?.length !== 1)
      throw new Error('not all are known yet')
  }
  const info = await ask(replicaPort, (redis) => redis.info('replication'))
  if (!info.includes('master_link_status:up')) throw new Error('the replica has no link to its master yet')
}

beforeAll(async () => {
  supervisor = await Supervisor.open()
  master = await startRedisServer(supervisor, 'master', configuration)
  replica = await startRedisServer(supervisor, 'replica', [
    ...configuration,
    `replicaof 127.0.0.1 ${master.port}`,
  ])
  sentinelPorts = await Promise.all(
    Array.from({ length: SENTINELS }, (_, i) => startSentinel(`sentinel-${i + 1}`)),
  )
  await eventually(20_000, () => requireFormed(replica.port))
  sluice = await install({
    supervisor,
    redisUrl: `redis-sentinel://:${PASSWORD}@${sentinelPorts.map((port) => `127.0.0.1:${port}`).join(',')}/${MASTER}`,
    prefix: PREFIX,
    workers: 1,
    environment: { REDIS_SENTINEL_PASSWORD: SENTINEL_PASSWORD },
    tuning: { sentinelPassword: SENTINEL_PASSWORD },
  })
  await sluice.startWorkers()
})

afterAll(async () => {
  sluice?.redis.disconnect()
  await supervisor?.stop({ force: true })
})

const loadOf = (journal: Journal): Load =>
  new Load({
    journal,
    apiUrls: [sluice.api.url],
    apiKey: sluice.apiKey,
    random: seededRandom(7),
    entriesPerSecond: 200,
  })

/** Lets the queue of the present master drain, and compares what was acknowledged with what is stored. */
async function account(...journals: readonly Journal[]): Promise<void> {
  const url = `redis://:${PASSWORD}@127.0.0.1:${await masterPort()}`
  expect(await drainQueue(url, redisNames(PREFIX), DRAIN_DEADLINE_MS)).toSatisfy(isEmpty)
  await awaitInserts(sluice.clickhouse, DRAIN_DEADLINE_MS)
  for (const journal of journals) {
    const { findings } = compare(journal, await readStored(sluice.clickhouse, journal.label))
    expect(findings).toSatisfy(isClean)
    expect(journal.count('acknowledged')).toBeGreaterThan(100)
  }
}

/** Sends for a while. */
async function send(label: string): Promise<Journal> {
  const journal = new Journal(label)
  const load = loadOf(journal)
  load.start()
  await sleep(1_000)
  await load.stop()
  return journal
}

/** Changes the master while entries are sent, and waits until the API has followed. */
async function failOver(change: () => Promise<void>, to: TestServer): Promise<void> {
  const load = loadOf(new Journal('meanwhile'))
  load.start()
  await sleep(500)
  await change()
  await eventually(15_000, async () => expect(await masterPort()).toBe(to.port))
  await sleep(500)
  await load.stop()
  await eventually(10_000, async () => expect((await fetch(`${sluice.api.opsUrl}/readyz`)).status).toBe(200))
}

// Of what is acknowledged while the master changes nothing is asserted: some may be lost, as docs/scaling.md says.
it('follows the master when it is made a replica, and when it dies', async () => {
  expect(await masterPort()).toBe(master.port)
  const first = await send('first')
  await account(first)

  await failOver(async () => {
    await askSentinel(sentinelPorts[0] ?? 0, (redis) => redis.call('SENTINEL', 'FAILOVER', MASTER))
    // Until it is told, it goes on taking what will be lost.
    await eventually(15_000, async () =>
      expect(await ask(master.port, (redis) => redis.info('replication'))).toContain('role:slave'),
    )
  }, replica)
  const second = await send('second')
  await account(first, second)

  await eventually(20_000, () => requireFormed(master.port))
  await failOver(() => replica.process.stop({ signal: 'SIGKILL' }), master)
  const third = await send('third')
  await account(first, second, third)
}, 90_000)
