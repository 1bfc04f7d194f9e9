import { Supervisor } from '@sluice/local'
import {
  BatchLedger,
  ChunkConsumer,
  ChunkQueue,
  encodeChunk,
  FetchMonitor,
  type QueueNames,
  shardNames,
} from '@sluice/queue'
import { openQueue } from '@sluice/queue/testing'
import { closeRedis, connectRedis, createLogger, type RedisConnection, plainRedis } from '@sluice/runtime'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { startRedisCluster, type TestCluster } from './redis-servers.ts'

const NODES = 3
const SHARDS = 6
const LOCK_DURATION_MS = 1_000
const ADD_DEADLINE_MS = 10_000

let supervisor: Supervisor
let cluster: TestCluster

beforeAll(async () => {
  supervisor = await Supervisor.open()
  cluster = await startRedisCluster(supervisor, NODES)
})

afterAll(() => supervisor?.stop({ force: true }))

async function connect(failFast: boolean): Promise<RedisConnection> {
  const redis = connectRedis(cluster.url, { failFast })
  redis.on('error', () => undefined)
  onTestFinished(() => closeRedis(redis))
  await once(redis, 'ready')
  return redis
}

async function add(redis: RedisConnection, names: QueueNames, ids: readonly string[]): Promise<void> {
  const queue = new ChunkQueue(redis, names, createLogger('test', 'silent'))
  const chunk = encodeChunk(1, Buffer.from('row\n'))
  for (const id of ids) await queue.add(id, chunk, performance.now() + ADD_DEADLINE_MS)
  await queue.close()
}

it('on a cluster, each operation of the consumer works for the shards of all nodes', async () => {
  const shards = shardNames('consumer', SHARDS)
  expect(new Set(await Promise.all(shards.map(({ waitKey }) => cluster.nodeOf(waitKey)))).size).toBe(NODES)
  const [api, redis] = [await connect(true), await connect(false)]
  await Promise.all(
    shards.map(async (names) => {
      const ledger = new BatchLedger(plainRedis(redis), names)
      const queue = openQueue(redis, names)
      onTestFinished(() => queue.close())
      const consumer = new ChunkConsumer({
        redis,
        names,
        workerId: 'a-worker',
        lockDurationMs: LOCK_DURATION_MS,
        logger: createLogger('test', 'silent'),
        fetchMonitor: new FetchMonitor(() => performance.now()),
      })
      onTestFinished(() => consumer.close())
      const ids = ['first', 'second', 'third', 'fourth']
      await add(api, names, ids)
      const fetch = await consumer.fetch(4, { isBusy: false })
      expect(fetch.turn === 'mine' && fetch.chunks.map(({ id }) => id)).toEqual(ids)
      // Longer than a lock, and than the stalled check needs for a job without a lock.
      await sleep(3 * LOCK_DURATION_MS)
      await consumer.fail('first', new Error('a bug'))
      await consumer.requeue(['second'], 'back')
      const members = ['third', 'fourth']
      await ledger.claim('a-batch', members)
      const repair = await ledger.beginRepair('a-batch', 'a-worker')
      expect(await ledger.recordSplit('a-batch', 'all', repair?.number ?? -1)).toBe(true)
      await ledger.renewLease('a-batch', 'a-worker')
      expect(await consumer.load(members)).toHaveLength(2)
      expect(await consumer.finish({ id: 'a-batch', members }, 0)).toBe(false)
      expect(await consumer.finish({ id: 'a-batch', members }, 1)).toBe(true)
      await ledger.endLease('a-batch', 'a-worker')
      await consumer.yieldTurn()
      expect(await queue.getJobCounts('waiting', 'active', 'failed')).toEqual({
        waiting: 1,
        active: 0,
        failed: 1,
      })
      expect(consumer.heldChunks).toBe(0)
    }),
  )
})
