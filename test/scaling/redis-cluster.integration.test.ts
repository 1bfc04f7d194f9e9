import { Supervisor } from '@sluice/local'
import { type RedisNames, shardNames } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { compare, isClean, readStored } from '../chaos/audit.ts'
import { awaitInserts, drainQueue, isEmpty } from '../chaos/drain.ts'
import { Journal } from '../chaos/journal.ts'
import { Load } from '../chaos/load.ts'
import { seededRandom } from '../chaos/random.ts'
import { eventually, post } from '../support.ts'
import { type Installation, install } from './installation.ts'
import { ask, startRedisCluster, type TestCluster } from './redis-servers.ts'

const NODES = 3
const SHARDS = 4
const DRAIN_DEADLINE_MS = 30_000
/** A machine that is busy may not let Redis answer in time; then the API refuses. */
const ANSWERED_DEADLINE_MS = 20_000

let supervisor: Supervisor
let cluster: TestCluster
let sluice: Installation
let names: readonly RedisNames[]

/** A prefix whose first shards are on a node each. */
async function spreadPrefix(): Promise<string> {
  for (let i = 0; ; i += 1) {
    const shards = shardNames(`scaling-${i}`, NODES)
    const nodes = await Promise.all(shards.map(({ waitKey }) => cluster.nodeOf(waitKey)))
    if (new Set(nodes).size === NODES) return `scaling-${i}`
  }
}

const serverOf = async (shard: number): Promise<TestCluster['nodes'][number]> => {
  const server = cluster.nodes[await cluster.nodeOf(names[shard]?.waitKey ?? '')]
  if (server === undefined) throw new Error('no node has the shard')
  return server
}

const waiting = (): Promise<number[]> => Promise.all(names.map(({ waitKey }) => sluice.redis.llen(waitKey)))

beforeAll(async () => {
  supervisor = await Supervisor.open()
  cluster = await startRedisCluster(supervisor, NODES)
  const prefix = await spreadPrefix()
  names = shardNames(prefix, SHARDS)
  sluice = await install({
    supervisor,
    redisUrl: cluster.url,
    prefix,
    workers: 2,
    environment: { QUEUE_SHARDS: String(SHARDS) },
  })
})

afterAll(async () => {
  sluice?.redis.disconnect()
  await supervisor?.stop({ force: true })
})

/** Lets all shards drain, and compares what was acknowledged with what is stored. */
async function account(journal: Journal): Promise<void> {
  for (const shard of names) {
    expect(await drainQueue(cluster.url, shard, DRAIN_DEADLINE_MS)).toSatisfy(isEmpty)
  }
  await awaitInserts(sluice.clickhouse, DRAIN_DEADLINE_MS)
  const { findings } = compare(journal, await readStored(sluice.clickhouse, journal.label))
  expect(findings).toSatisfy(isClean)
}

it('spreads chunks over all shards, and the gauge adds them up', async () => {
  const { api, apiKey } = sluice
  const journal = new Journal('spread')
  await eventually(ANSWERED_DEADLINE_MS, async () => {
    const [number = -1] = journal.open(1)
    const { status } = await post(
      { apiUrl: api.url, apiKey },
      { level: 'info', message: journal.message(number) },
    )
    journal.settle([number], status === 202 ? 'acknowledged' : 'refused')
    if (journal.count('acknowledged') < 3 * SHARDS) throw new Error('not all are taken yet')
  })
  const depths = await waiting()
  const depth = depths.reduce((sum, each) => sum + each, 0)
  // What was refused may be there all the same.
  expect(depth).toBeGreaterThanOrEqual(3 * SHARDS)
  for (const each of depths) expect(each).toBeGreaterThan(0)
  await eventually(5_000, async () => {
    const overload = await fetch(`${api.opsUrl}/overload`)
    const { redisReadable, signals } = (await overload.json()) as {
      redisReadable: boolean
      signals: { queue_depth: { value: number }; redis_memory: { value: number } }
    }
    expect(redisReadable).toBe(true)
    expect(signals.queue_depth.value).toBe(depth)
    expect(signals.redis_memory.value).toBeLessThan(50)
  })
  await sluice.startWorkers()
  await account(journal)
})

/** @returns status and body */
async function sendKeyed(key: string, message: string): Promise<string> {
  const response = await fetch(`${sluice.api.url}/v1/logs`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${sluice.apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify({ level: 'info', message }),
    signal: AbortSignal.timeout(10_000),
  })
  return `${response.status} ${await response.text()}`
}

it('takes each idempotency key once, on whichever shard it is', async () => {
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
  await account(journal)
  const records = await Promise.all(
    cluster.nodes.map(({ port }) => ask(port, (redis) => redis.keys('*:idempotency:*'))),
  )
  expect(records.flat()).toHaveLength(20)
  for (const some of records) expect(some.length).toBeGreaterThan(0)
})

it('tells every node of a key that was revoked', async () => {
  const { key, record } = await sluice.registry.createKey('scaling')
  const target = { apiUrl: sluice.api.url, apiKey: key }
  const status = async (): Promise<number> => (await post(target, { logs: [] })).status
  expect(await status()).toBe(202)
  await sluice.registry.revokeKey(record.id)
  await eventually(5_000, async () => expect(await status()).toBe(401))
})

it('loses and doubles nothing when nodes and workers are killed under load, and goes on without one node', async () => {
  const journal = new Journal('killed')
  const { api, apiKey, workers } = sluice
  const load = new Load({
    journal,
    apiUrls: [api.url],
    apiKey,
    random: seededRandom(5),
    entriesPerSecond: 300,
  })
  load.start()
  await sleep(1_000)
  await workers[0]?.process.stop({ signal: 'SIGKILL' })
  await workers[0]?.process.start()

  // A shard's node is away for longer than it takes the cluster to notice.
  const { process: node } = await serverOf(1)
  await node.stop({ signal: 'SIGKILL' })
  await sleep(2_500)
  const before = journal.count('acknowledged')
  await eventually(ANSWERED_DEADLINE_MS, async () =>
    expect(journal.count('acknowledged')).toBeGreaterThan(before + 150),
  )
  await node.start()

  // The one with the registry and the rate limits too.
  const { process: first } = await serverOf(0)
  await first.stop({ signal: 'SIGKILL' })
  await first.start()
  await workers[1]?.process.stop({ signal: 'SIGKILL' })
  await workers[1]?.process.start()
  await sleep(1_000)
  await load.stop()
  await account(journal)
  expect(journal.count('acknowledged')).toBeGreaterThan(1_000)
}, 90_000)
