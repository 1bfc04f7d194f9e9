import { closeRedis } from '@sluice/harness/close-redis'
import { FaultProxy } from '@sluice/harness'
import { connectRedis, installationNames, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { ChunkQueue } from '../src/chunk-queue.ts'
import { QueueUnavailableError } from '../src/recorded-add.ts'
import { queueNames } from '../src/queue-names.ts'
import { ShardCount } from '../src/shards.ts'
import { chunkOf, useTestRedis } from './support/consumer-fixture.ts'

const ADD_DEADLINE_MS = 5_000
/** The deadline of an add that is to miss it. */
const SHORT_DEADLINE_MS = 400

const server = useTestRedis()
let redis: RedisConnection
let prefix: string

beforeEach(() => {
  redis = connectRedis(server.url, { failFast: false })
  onTestFinished(() => closeRedis(redis))
  prefix = `test-${randomUUID()}`
})

const record = (): Promise<string | null> => redis.get(installationNames(prefix).shardCountKey)

/** What a process with this setting knows after it has asked Redis. */
async function knownWith(configured: number): Promise<number> {
  const count = new ShardCount(redis, prefix, configured)
  await count.refresh()
  return count.names.length
}

describe('the number of shards', () => {
  it('is the highest setting of any process, in any order', async () => {
    expect(await knownWith(2)).toBe(2)
    expect(await knownWith(4)).toBe(4)
    expect(await knownWith(1)).toBe(4)
    expect(await knownWith(3)).toBe(4)
    expect(await record()).toBe('4')
  })

  it('comes from the setting before Redis has replied, and never falls, also while Redis is full', async () => {
    const count = new ShardCount(redis, prefix, 2)
    expect(count.names.map(({ queuePrefix }) => queuePrefix)).toEqual([`{${prefix}}`, `{${prefix}:1}`])
    await redis.config('SET', 'maxmemory', '1')
    onTestFinished(async () => void (await redis.config('SET', 'maxmemory', '0')))
    await knownWith(4)
    await count.refresh()
    await redis.del(installationNames(prefix).shardCountKey)
    await count.refresh()
    expect(count.names.map(({ shard }) => shard)).toEqual([0, 1, 2, 3])
  })

  it.each([
    ['not a number', 2],
    ['-5', 2],
    ['nan', 2],
    ['1000000000', 32],
  ])('is valid if Redis has %j', async (stored, expected) => {
    await redis.set(installationNames(prefix).shardCountKey, stored)
    expect(await knownWith(2)).toBe(expected)
  })
})

/** A queue of an API process, and the connection of it. */
function openQueue(shard: number, url = server.url): { queue: ChunkQueue; connection: RedisConnection } {
  const connection = connectRedis(url, { failFast: true, commandTimeoutMs: ADD_DEADLINE_MS })
  connection.on('error', () => undefined)
  const queue = new ChunkQueue(connection, queueNames(prefix, shard))
  onTestFinished(async () => {
    await queue.close()
    await closeRedis(connection)
  })
  return { queue, connection }
}

const add = (queue: ChunkQueue, id: string, withinMs = ADD_DEADLINE_MS): Promise<unknown> =>
  queue.add(id, chunkOf('row'), performance.now() + withinMs)

describe('an add to a shard', () => {
  it('stores nothing if the shard cannot be recorded', async () => {
    // A script that reads a string fails on a list.
    await redis.lpush(installationNames(prefix).shardCountKey, 'x')
    const { queue } = openQueue(3)
    await expect(add(queue, 'one', SHORT_DEADLINE_MS)).rejects.toThrow(QueueUnavailableError)
    expect(await redis.keys(`{${prefix}:3}:logs:one`)).toEqual([])
    expect(await redis.exists(queueNames(prefix, 3).waitKey)).toBe(0)
  })

  it('is recorded again on a new connection, which may lead to another Redis', async () => {
    const proxy = await FaultProxy.open(server.url)
    onTestFinished(() => proxy.down())
    const { queue } = openQueue(1, proxy.url)
    await add(queue, 'one')
    await redis.del(installationNames(prefix).shardCountKey)
    await add(queue, 'two')
    expect(await record()).toBeNull()
    proxy.reset()
    await vi.waitUntil(() => !queue.isConnected, { timeout: ADD_DEADLINE_MS })
    await vi.waitUntil(() => queue.isConnected, { timeout: ADD_DEADLINE_MS })
    await add(queue, 'three')
    expect(await record()).toBe('2')
  })
})
