import { closeRedis } from '@sluice/harness/close-redis'
import { eventually, pause, postLogs, seededRandom } from '@sluice/harness'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { isExactlyOnce, settle } from '@sluice/harness/settle'
import { Supervisor } from '@sluice/local'
import { type QueueNames, shardNames } from '@sluice/queue'
import { connectRedis } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { queryServer, startRedisCluster, type TestCluster } from './redis-servers.ts'
import { type ScaledInstallation, startScaledInstallation } from './scaled-installation.ts'

const NODES = 3
const SHARDS = 4

let supervisor: Supervisor
let cluster: TestCluster
let installation: ScaledInstallation
let names: readonly QueueNames[]
let prefix: string

/** A prefix whose first shards are on different nodes. */
async function spreadPrefix(): Promise<string> {
  for (let i = 0; ; i += 1) {
    const shards = shardNames(`scaling-${i}`, NODES)
    const nodes = await Promise.all(shards.map(({ waitKey }) => cluster.nodeOf(waitKey)))
    if (new Set(nodes).size === NODES) return `scaling-${i}`
  }
}

const serverOf = async (shard: number): Promise<TestCluster['nodes'][number]> => {
  const server = cluster.nodes[await cluster.nodeOf(names[shard]?.waitKey ?? '')]
  if (server === undefined) throw new Error(`no node has shard ${shard}`)
  return server
}

const waiting = (): Promise<number[]> =>
  Promise.all(names.map(({ waitKey }) => installation.redis.llen(waitKey)))

beforeAll(async () => {
  supervisor = new Supervisor()
  cluster = await startRedisCluster(supervisor, NODES)
  prefix = await spreadPrefix()
  names = shardNames(prefix, SHARDS)
  installation = await startScaledInstallation({
    supervisor,
    redisUrl: cluster.url,
    prefix,
    workers: 2,
    environment: { QUEUE_SHARDS: String(SHARDS) },
  })
})

afterAll(async () => {
  installation?.redis.disconnect()
  await supervisor?.stop({ force: true })
})

/** Drains all shards, and compares what was acknowledged with what is stored. */
async function expectExactlyOnce(journal: Journal): Promise<void> {
  const stores = { redisUrl: cluster.url, shards: names, clickhouse: installation.clickhouse }
  expect(await settle(stores, journal)).toSatisfy(isExactlyOnce)
}

it('distributes chunks over all shards, and the overload gauge returns their sums', async () => {
  const { api } = installation
  const journal = new Journal('spread')
  await eventually(async () => {
    const [number = -1] = journal.open(1)
    const { status } = await postLogs(installation, { level: 'info', message: journal.message(number) })
    journal.settle([number], status === 202 ? 'acknowledged' : 'refused')
    if (journal.count('acknowledged') < 3 * SHARDS) throw new Error('not all entries are accepted yet')
  })
  const depths = await waiting()
  const depth = depths.reduce((sum, each) => sum + each, 0)
  // An entry whose request was refused may still be queued.
  expect(depth).toBeGreaterThanOrEqual(3 * SHARDS)
  for (const each of depths) expect(each).toBeGreaterThan(0)
  await eventually(async () => {
    const overload = await fetch(`${api.opsUrl}/overload`)
    const { redisReadable, signals } = (await overload.json()) as {
      redisReadable: boolean
      signals: { queue_depth: { value: number }; redis_memory: { value: number } }
    }
    expect(redisReadable).toBe(true)
    expect(signals.queue_depth.value).toBe(depth)
    expect(signals.redis_memory.value).toBeLessThan(50)
  })
  await installation.startWorkers()
  await expectExactlyOnce(journal)
})

/** @returns status and body */
async function sendKeyed(key: string, message: string): Promise<string> {
  const { status, text } = await postLogs(
    installation,
    { level: 'info', message },
    { 'idempotency-key': key },
  )
  return `${status} ${text}`
}

it('accepts each idempotency key once, on every shard', async () => {
  const journal = new Journal('keyed')
  const numbers = journal.open(20)
  const answers = await Promise.all(
    numbers.map(async (number) => {
      const key = randomUUID()
      const three = await Promise.all([1, 2, 3].map(() => sendKeyed(key, journal.message(number))))
      return new Set([...three, await sendKeyed(key, journal.message(number))])
    }),
  )
  for (const same of answers) {
    expect(same.size).toBe(1)
    expect([...same][0]).toMatch(/^202 /)
  }
  journal.settle(numbers, 'acknowledged')
  await expectExactlyOnce(journal)
  const records = await Promise.all(
    cluster.nodes.map(({ port }) => queryServer(port, (redis) => redis.keys('*:idempotency:*'))),
  )
  expect(records.flat()).toHaveLength(20)
  for (const some of records) expect(some.length).toBeGreaterThan(0)
})

it('a command whose connection is lost fails with failFast, and is not sent again', async () => {
  const redis = connectRedis(cluster.url, { failFast: true }).on('error', () => undefined)
  onTestFinished(() => closeRedis(redis))
  await once(redis, 'ready')
  const port = cluster.nodes[await cluster.nodeOf('list')]?.port ?? 0
  const blocked = async (): Promise<string[]> => {
    const clients = await queryServer(port, (node) => node.client('LIST'))
    return [...String(clients).matchAll(/^id=(\d+) .* cmd=blpop /gm)].map(([, id = '']) => id)
  }
  const outcome = redis.blpop('list', 5).then(
    () => 'answered',
    () => 'failed',
  )
  await eventually(async () => expect(await blocked()).toHaveLength(1))
  const ids = await blocked()
  await queryServer(port, (node) => Promise.all(ids.map((id) => node.client('KILL', 'ID', id))))
  expect(await outcome).toBe('failed')
  await pause(700)
  expect(await blocked()).toEqual([])
})

it('loses and duplicates nothing when nodes and workers are killed under load, and continues without one node', async () => {
  const journal = new Journal('killed')
  const { apiUrl, apiKey, workers } = installation
  const load = new Load({
    journal,
    apiUrls: [apiUrl],
    apiKey,
    random: seededRandom(5),
    entriesPerSecond: 300,
  })
  load.start()
  await pause(1_000)
  await workers[0]?.process.stop({ signal: 'SIGKILL' })
  await workers[0]?.process.start()

  // The node of a shard is down for longer than the cluster needs to notice.
  const { process: node } = await serverOf(1)
  await node.stop({ signal: 'SIGKILL' })
  await pause(2_500)
  const before = journal.count('acknowledged')
  await eventually(async () => expect(journal.count('acknowledged')).toBeGreaterThan(before + 150))
  await node.start()

  // The first shard's node also has the registry and the rate limits.
  const { process: first } = await serverOf(0)
  await first.stop({ signal: 'SIGKILL' })
  await first.start()
  await workers[1]?.process.stop({ signal: 'SIGKILL' })
  await workers[1]?.process.start()
  await pause(1_000)
  await load.stop()
  await expectExactlyOnce(journal)
  expect(journal.count('acknowledged')).toBeGreaterThan(1_000)
}, 90_000)
