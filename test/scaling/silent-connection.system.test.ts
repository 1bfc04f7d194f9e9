import { eventually, FaultProxy, pause } from '@sluice/harness'
import { Supervisor } from '@sluice/local'
import { ChunkConsumer, ChunkQueue, encodeChunk, FetchMonitor, queueNames } from '@sluice/queue'
import { closeRedis, connectRedis, createLogger, keepSubscribed, type RedisConnection } from '@sluice/runtime'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { durable, PASSWORD, queryServer, startRedisServer } from './redis-servers.ts'

/** A silent connection is given up after 15 s. */
const RECOVERED_WITHIN_MS = 20_000
const REPORTED_WITHIN_MS = 10_000
/** Of a test with several waits. */
const TEST_MAX_MS = 120_000
/** The interval of a worker without chunks. */
const FETCH_INTERVAL_MS = 100
/** Until a subscriber has received a message, if its connection works. */
const DELIVERED_WITHIN_MS = 100
const MASTER = 'sluice'
const SENTINEL_PASSWORD = 'secret-of-the-sentinel'

let supervisor: Supervisor
/** A proxy in front of a Redis, and the URL by which a client gets to the Redis through this proxy. */
interface Proxied {
  readonly proxy: FaultProxy
  readonly url: string
}
const proxied = new Map<string, Proxied>()

const urlOf = (port: number): string => `redis://:${PASSWORD}@127.0.0.1:${port}`

async function startServer(name: string, lines: readonly string[] = []): Promise<Proxied & { port: number }> {
  const { port } = await startRedisServer(supervisor, name, [...durable, ...lines])
  const proxy = await FaultProxy.open(urlOf(port))
  return { proxy, url: proxy.url, port }
}

async function startCluster(): Promise<Proxied> {
  const node = await startServer('node', [
    'cluster-enabled yes',
    `cluster-port ${await supervisor.ports.free()}`,
  ])
  await queryServer(node.port, async (redis) => {
    await redis.config('SET', 'cluster-announce-port', node.proxy.port)
    await redis.config('SET', 'cluster-announce-ip', '127.0.0.1')
    await redis.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
    await eventually(async () => expect(await redis.cluster('INFO')).toContain('cluster_state:ok'))
  })
  return { ...node, url: node.proxy.url.replace('redis:', 'redis-cluster:') }
}

async function startSentinel(): Promise<Proxied> {
  const master = await startServer('master')
  const port = await supervisor.ports.free()
  await startRedisServer(
    supervisor,
    'sentinel',
    [
      `port ${port}`,
      `requirepass ${SENTINEL_PASSWORD}`,
      `sentinel monitor ${MASTER} 127.0.0.1 ${master.proxy.port} 1`,
      `sentinel auth-pass ${MASTER} ${PASSWORD}`,
      `sentinel down-after-milliseconds ${MASTER} 600000`,
    ],
    {
      port,
      args: ['--sentinel'],
      isReady: async () =>
        (await queryServer(port, (redis) => redis.ping(), {
          password: SENTINEL_PASSWORD,
          enableReadyCheck: false,
        })) === 'PONG',
    },
  )
  return { ...master, url: `redis-sentinel://:${PASSWORD}@127.0.0.1:${port}/${MASTER}` }
}

beforeAll(async () => {
  supervisor = await Supervisor.open()
  const [single, cluster, sentinel] = await Promise.all([
    startServer('single'),
    startCluster(),
    startSentinel(),
  ])
  proxied.set('redis', single).set('redis-cluster', cluster).set('redis-sentinel', sentinel)
})

afterAll(async () => {
  await Promise.all([...proxied.values()].map(({ proxy }) => proxy.down()))
  await supervisor?.stop({ force: true })
})

/** Concurrent tests must register what happens at their end with their context. */
type AtEnd = TestContext['onTestFinished']

async function connect(url: string, failFast: boolean, atEnd: AtEnd): Promise<RedisConnection> {
  const connection = connectRedis(url, {
    failFast,
    sentinelPassword: SENTINEL_PASSWORD,
    ...(failFast ? { commandTimeoutMs: 5_000 } : {}),
  })
  connection.on('error', () => undefined)
  atEnd(() => closeRedis(connection))
  await once(connection, 'ready')
  return connection
}

function find(kind: string): Proxied {
  const found = proxied.get(kind)
  if (found === undefined) throw new Error(`no Redis for ${kind}`)
  return found
}

interface Watched {
  readonly fetchMonitor: FetchMonitor
  /** The ids of the chunks that were delivered. */
  readonly delivered: readonly string[]
  /** Adds a chunk, through a new connection. */
  readonly add: (chunkId: string) => Promise<void>
}

async function startConsumer({ url }: Proxied, prefix: string, atEnd: AtEnd): Promise<Watched> {
  const names = queueNames(prefix)
  const logger = createLogger('test', 'silent')
  const fetchMonitor = new FetchMonitor(() => performance.now())
  const delivered: string[] = []
  const consumer = new ChunkConsumer({
    redis: await connect(url, false, atEnd),
    names,
    workerId: 'a-worker',
    lockDurationMs: 30_000,
    logger,
    fetchMonitor,
  })
  const fetchAll = async (): Promise<void> => {
    for (;;) {
      const fetch = await consumer.fetch(10, { isBusy: false })
      if (fetch.turn === 'mine') delivered.push(...fetch.chunks.map(({ id }) => id))
      await pause(FETCH_INTERVAL_MS)
    }
  }
  // It ends when the connection is closed.
  fetchAll().catch(() => undefined)
  atEnd(() => consumer.close())
  const add = async (chunkId: string): Promise<void> => {
    const queue = new ChunkQueue(await connect(url, true, atEnd), names, logger)
    await queue.add(chunkId, encodeChunk(1, Buffer.from('row\n')), performance.now() + 5_000)
    await queue.close()
  }
  return { fetchMonitor, delivered, add }
}

/** @returns publishes a message, through a new connection, and throws unless the subscriber receives it soon */
async function startSubscriber(
  { url }: Proxied,
  channel: string,
  atEnd: AtEnd,
): Promise<(message: string) => Promise<void>> {
  const subscriber = await connect(url, false, atEnd)
  const received = new Set<string>()
  subscriber.on('message', (_channel: string, message: string) => received.add(message))
  atEnd(keepSubscribed(subscriber, channel, () => undefined))
  return async (message) => {
    const publisher = connectRedis(url, {
      failFast: true,
      commandTimeoutMs: 1_000,
      sentinelPassword: SENTINEL_PASSWORD,
    })
    try {
      await once(publisher, 'ready')
      await publisher.publish(channel, message)
      await pause(DELIVERED_WITHIN_MS)
      expect(received).toContain(message)
    } finally {
      await closeRedis(publisher)
    }
  }
}

describe.concurrent.each(['redis', 'redis-sentinel', 'redis-cluster'])(
  '%s://: a silent connection',
  (kind) => {
    it(
      'is given up, and another one is used',
      async ({ onTestFinished }) => {
        const found = find(kind)
        const { fetchMonitor, delivered, add } = await startConsumer(found, `silent-${kind}`, onTestFinished)
        const publish = await startSubscriber(found, `changes-${kind}`, onTestFinished)
        await add('before')
        await eventually(async () => expect(delivered).toEqual(['before']))
        await eventually(() => publish('before'))
        expect(fetchMonitor.readiness).toEqual({ ready: true, reasons: [] })

        expect(found.proxy.silence()).toBeGreaterThan(1)
        const silentAtMs = performance.now()
        const silentMs = (): number => performance.now() - silentAtMs
        await add('after')
        await eventually(async () => expect(fetchMonitor.readiness.ready).toBe(false))
        expect(silentMs()).toBeLessThan(REPORTED_WITHIN_MS)
        await eventually(async () => expect(delivered).toEqual(['before', 'after']))
        await eventually(() => publish('after'))
        expect(silentMs()).toBeLessThan(RECOVERED_WITHIN_MS)
        await eventually(async () => expect(fetchMonitor.readiness.ready).toBe(true))
      },
      TEST_MAX_MS,
    )
  },
)
