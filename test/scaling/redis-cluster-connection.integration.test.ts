import { Supervisor } from '@sluice/local'
import { connectRedis, redisServers, type RedisConnection, type RedisTuning } from '@sluice/runtime'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from '../support.ts'
import { ask, startRedisCluster, type TestCluster, type TestServer } from './redis-servers.ts'

const NODES = 3
/** Long enough for an answer on a machine that is busy. */
const COMMAND_TIMEOUT_MS = 1_500
const patient: RedisTuning = { failFast: false }
const failFast: RedisTuning = { failFast: true, commandTimeoutMs: COMMAND_TIMEOUT_MS }

let supervisor: Supervisor
let cluster: TestCluster
/** A key on each node. */
let keys: string[]

beforeAll(async () => {
  supervisor = await Supervisor.open()
  cluster = await startRedisCluster(supervisor, NODES)
  keys = []
  for (let i = 0; Object.keys(keys).length < NODES; i += 1)
    keys[await cluster.nodeOf(`key-${i}`)] = `key-${i}`
})

afterAll(() => supervisor?.stop({ force: true }))

const node = (index: number): TestServer => {
  const server = cluster.nodes[index]
  if (server === undefined) throw new Error(`there is no node ${index}`)
  return server
}

async function connect(tuning: RedisTuning): Promise<RedisConnection> {
  const redis = connectRedis(cluster.url, tuning)
  redis.on('error', () => undefined)
  onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  for (const key of keys) await redis.get(key)
  return redis
}

/** How a command ended, and how long it took, ms. */
async function fate(command: Promise<unknown>): Promise<{ end: string; tookMs: number }> {
  const startedMs = performance.now()
  const end = await command.then(
    () => 'answered',
    (error: Error) => (error.message === 'Command timed out' ? 'timed out' : 'failed'),
  )
  return { end, tookMs: performance.now() - startedMs }
}

/** Waits for an element for a while: for ever would outlive the connection. */
const wait = (redis: RedisConnection): Promise<unknown> => redis.blpop(keys[1] ?? '', 2)

/** The connections that wait for an element of a list on a node. */
async function blocked(index: number): Promise<string[]> {
  const list = await ask(node(index).port, (redis) => redis.client('LIST'))
  return [...String(list).matchAll(/^id=(\d+) .* cmd=blpop /gm)].map(([, id = '']) => id)
}

/** Ends the connections that wait for an element, as a network would. */
async function cut(index: number): Promise<void> {
  const ids = await eventually(5_000, async () => {
    const some = await blocked(index)
    if (some.length === 0) throw new Error('nobody waits')
    return some
  })
  await ask(node(index).port, (redis) => Promise.all(ids.map((id) => redis.client('KILL', 'ID', id))))
}

/** How many connections a node has had since it was started. */
async function connectionsOf(index: number): Promise<number> {
  const stats = await ask(node(index).port, (redis) => redis.info('stats'))
  return Number(/^total_connections_received:(\d+)/m.exec(stats)?.[1])
}

describe('a command whose connection is lost', () => {
  it('fails at once where it is to fail fast, and is not sent again', async () => {
    const redis = await connect({ failFast: true })
    const waiting = fate(wait(redis))
    await cut(1)
    expect((await waiting).end).toBe('failed')
    await sleep(700)
    expect(await blocked(1)).toEqual([])
    await eventually(5_000, async () => expect(await redis.get(keys[1] ?? '')).toBeNull())
  })

  it('is sent again where it may wait', async () => {
    const redis = await connect(patient)
    const waiting = fate(wait(redis))
    await cut(1)
    await eventually(5_000, async () => expect(await blocked(1)).toHaveLength(1))
    expect((await waiting).end).toBe('answered')
  })
})

describe('while a node is away', () => {
  it('commands for it fail at once, those for the others are answered, and it is found again', async () => {
    const redis = await connect(failFast)
    const waits = await connect(patient)
    await node(2).process.stop({ signal: 'SIGKILL' })
    const late = fate(waits.get(keys[2] ?? ''))
    for (let i = 0; i < 5; i += 1) {
      expect((await fate(redis.get(keys[2] ?? ''))).end).toBe('failed')
      expect((await fate(redis.get(keys[0] ?? ''))).end).toBe('answered')
    }
    await node(2).process.start()
    expect((await late).end).toBe('answered')
    await eventually(5_000, async () => expect((await fate(redis.get(keys[2] ?? ''))).end).toBe('answered'))
    expect(redisServers(redis)).toHaveLength(NODES)
  })

  it('that is told about once a second, however many commands fail', async () => {
    const redis = await connect(failFast)
    let errors = 0
    redis.on('error', () => (errors += 1))
    await node(2).process.stop({ signal: 'SIGKILL' })
    const startedMs = performance.now()
    let connections = await connectionsOf(0)
    for (let i = 0; i < 200; i += 1) {
      expect((await fate(redis.get(keys[2] ?? ''))).end).toBe('failed')
      await sleep(5)
    }
    connections = (await connectionsOf(0)) - connections
    const seconds = (performance.now() - startedMs) / 1_000
    await node(2).process.start()
    expect(errors).toBeGreaterThan(0)
    expect(errors).toBeLessThanOrEqual(seconds + 2)
    // Those that ask who has the slots now, and the test's own.
    expect(connections).toBeLessThan(10 * (seconds + 2))
    await eventually(5_000, async () => expect((await fate(redis.get(keys[2] ?? ''))).end).toBe('answered'))
  })

  it('without a word, commands for it have their time, and it is found again', async () => {
    const redis = await connect(failFast)
    node(2).process.kill('SIGSTOP')
    try {
      const { end, tookMs } = await fate(redis.get(keys[2] ?? ''))
      expect(end).not.toBe('answered')
      // It was given its time; without a limit it would not have ended.
      expect(tookMs).toBeGreaterThan(COMMAND_TIMEOUT_MS / 2)
      expect((await fate(redis.get(keys[0] ?? ''))).end).toBe('answered')
    } finally {
      node(2).process.kill('SIGCONT')
    }
    await eventually(5_000, async () => expect((await fate(redis.get(keys[2] ?? ''))).end).toBe('answered'))
  })
})

it('is not there while no node is, and comes back', async () => {
  const redis = await connect(failFast)
  await Promise.all(cluster.nodes.map(({ process }) => process.stop({ signal: 'SIGKILL' })))
  await eventually(5_000, async () => expect(redis.status).not.toBe('ready'))
  expect(await fate(redis.get(keys[0] ?? ''))).toMatchObject({ end: 'failed' })
  await Promise.all(cluster.nodes.map(({ process }) => process.start()))
  await eventually(10_000, async () => expect((await fate(redis.get(keys[0] ?? ''))).end).toBe('answered'))
})
