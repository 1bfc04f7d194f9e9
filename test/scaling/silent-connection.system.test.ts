import { closeRedis } from '@sluice/harness/close-redis'
import { eventually, FaultProxy } from '@sluice/harness'
import { Supervisor } from '@sluice/local'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { durable, PASSWORD, queryServer, startRedisServer } from './redis-servers.ts'

// A silent connection is given up after 15 s. test/chaos/silent-redis.system.test.ts has a worker with one.

/** Of a test with several waits. */
const TEST_MAX_MS = 120_000

let supervisor: Supervisor
/** In front of a Redis of each kind. */
const proxies: Record<string, FaultProxy> = {}

async function startServer(name: string, lines: readonly string[] = []): Promise<number> {
  const { port } = await startRedisServer(supervisor, name, [...durable, ...lines])
  proxies[name] = await FaultProxy.open(`redis://:${PASSWORD}@127.0.0.1:${port}`)
  return port
}

async function startCluster(): Promise<void> {
  const busPort = await supervisor.ports.free()
  const port = await startServer('redis-cluster', ['cluster-enabled yes', `cluster-port ${busPort}`])
  await queryServer(port, async (redis) => {
    await redis.config('SET', 'cluster-announce-port', proxies['redis-cluster']?.port ?? 0)
    await redis.config('SET', 'cluster-announce-ip', '127.0.0.1')
    await redis.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
    await eventually(async () => expect(await redis.cluster('INFO')).toContain('cluster_state:ok'))
  })
}

beforeAll(async () => {
  supervisor = new Supervisor()
  await Promise.all([startServer('redis'), startCluster()])
})

afterAll(async () => {
  await Promise.all(Object.values(proxies).map((proxy) => proxy.down()))
  await supervisor?.stop({ force: true })
})

describe.concurrent.each(['redis', 'redis-cluster'])('%s://', (kind) => {
  it(
    'a silent connection is given up, and another one is used',
    async ({ onTestFinished }) => {
      const proxy = proxies[kind]
      if (proxy === undefined) throw new Error(`no proxy of ${kind}`)
      const connect = async (): Promise<RedisConnection> => {
        const connection = connectRedis(proxy.url.replace('redis:', `${kind}:`), { failFast: false })
        connection.on('error', () => undefined)
        onTestFinished(() => closeRedis(connection))
        await once(connection, 'ready')
        return connection
      }
      const connection = await connect()
      await connection.set('key', 'value')
      expect(proxy.silence()).toBeGreaterThan(0)
      expect(await connection.get('key')).toBe('value')
    },
    TEST_MAX_MS,
  )
})
