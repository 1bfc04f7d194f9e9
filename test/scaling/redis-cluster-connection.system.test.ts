import { eventually, pause } from '@sluice/harness'
import { Supervisor } from '@sluice/local'
import {
  closeRedis,
  connectRedis,
  type RedisConnection,
  redisServers,
  type RedisTuning,
} from '@sluice/runtime'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { queryServer, startRedisCluster, type TestCluster, type TestServer } from './redis-servers.ts'

const NODES = 3
/** Long enough for a response on a busy machine. */
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
  if (server === undefined) throw new Error(`node ${index} does not exist`)
  return server
}

async function connect(tuning: RedisTuning): Promise<RedisConnection> {
  const redis = connectRedis(cluster.url, tuning)
  redis.on('error', () => undefined)
  onTestFinished(() => closeRedis(redis))
  await once(redis, 'ready')
  for (const key of keys) await redis.get(key)
  return redis
}

/** The result of a command, and its duration, ms. */
async function resultOf(command: Promise<unknown>): Promise<{ result: string; tookMs: number }> {
  const startedMs = performance.now()
  const result = await command.then(
    () => 'answered',
    (error: Error) => (error.message === 'Command timed out' ? 'timed out' : 'failed'),
  )
  return { result, tookMs: performance.now() - startedMs }
}

/** Waits for an element for 2 s. Without a limit, it would outlive the connection. */
const wait = (redis: RedisConnection): Promise<unknown> => redis.blpop(keys[1] ?? '', 2)

/** The ids of the connections that wait for an element of a list on a node. */
async function blocked(index: number): Promise<string[]> {
  const list = await queryServer(node(index).port, (redis) => redis.client('LIST'))
  return [...String(list).matchAll(/^id=(\d+) .* cmd=blpop /gm)].map(([, id = '']) => id)
}

/** Closes the connections that wait for an element, like a network failure. */
async function cut(index: number): Promise<void> {
  const ids = await eventually(async () => {
    const some = await blocked(index)
    if (some.length === 0) throw new Error('no connection is waiting')
    return some
  })
  await queryServer(node(index).port, (redis) => Promise.all(ids.map((id) => redis.client('KILL', 'ID', id))))
}

describe('a command whose connection is lost', () => {
  it('fails immediately with failFast, and is not retried', async () => {
    const redis = await connect({ failFast: true })
    const waiting = resultOf(wait(redis))
    await cut(1)
    expect((await waiting).result).toBe('failed')
    await pause(700)
    expect(await blocked(1)).toEqual([])
    await eventually(async () => expect(await redis.get(keys[1] ?? '')).toBeNull())
  })

  it('is retried without failFast', async () => {
    const redis = await connect(patient)
    const waiting = resultOf(wait(redis))
    await cut(1)
    await eventually(async () => expect(await blocked(1)).toHaveLength(1))
    expect((await waiting).result).toBe('answered')
  })
})

describe('while a node is down', () => {
  it('its commands fail immediately, the other nodes reply, and it is used again after a restart', async () => {
    const redis = await connect(failFast)
    const waits = await connect(patient)
    await node(2).process.stop({ signal: 'SIGKILL' })
    const late = resultOf(waits.get(keys[2] ?? ''))
    for (let i = 0; i < 5; i += 1) {
      expect((await resultOf(redis.get(keys[2] ?? ''))).result).toBe('failed')
      expect((await resultOf(redis.get(keys[0] ?? ''))).result).toBe('answered')
    }
    await node(2).process.start()
    expect((await late).result).toBe('answered')
    await eventually(async () => expect((await resultOf(redis.get(keys[2] ?? ''))).result).toBe('answered'))
    expect(redisServers(redis)).toHaveLength(NODES)
  })

  it('but keeps its connections open, its commands time out, and it is used again when it replies', async () => {
    const redis = await connect(failFast)
    node(2).process.kill('SIGSTOP')
    try {
      const { result, tookMs } = await resultOf(redis.get(keys[2] ?? ''))
      expect(result).not.toBe('answered')
      // It waited for its timeout. Without one it would not have returned.
      expect(tookMs).toBeGreaterThan(COMMAND_TIMEOUT_MS / 2)
      expect((await resultOf(redis.get(keys[0] ?? ''))).result).toBe('answered')
    } finally {
      node(2).process.kill('SIGCONT')
    }
    await eventually(async () => expect((await resultOf(redis.get(keys[2] ?? ''))).result).toBe('answered'))
  })
})

it('fails while all nodes are down, and recovers with them', async () => {
  const redis = await connect(failFast)
  await Promise.all(cluster.nodes.map(({ process }) => process.stop({ signal: 'SIGKILL' })))
  await eventually(async () => expect(redis.status).not.toBe('ready'))
  expect(await resultOf(redis.get(keys[0] ?? ''))).toMatchObject({ result: 'failed' })
  await Promise.all(cluster.nodes.map(({ process }) => process.start()))
  await eventually(async () => expect((await resultOf(redis.get(keys[0] ?? ''))).result).toBe('answered'))
})
