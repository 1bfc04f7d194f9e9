import { closeRedis } from '@sluice/harness/close-redis'
import { eventually, pause } from '@sluice/harness'
import { Supervisor } from '@sluice/local'
import { connectRedis, ReplicatedRedis } from '@sluice/runtime'
import { Cluster } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { idOf, queryServer, SlotMove, startRedisCluster, type TestCluster } from './redis-servers.ts'

/** After two seconds without a confirmation, the nodes are asked for their slots in any case. */
const REDISCOVERY_MS = 2_000
const DEADLINE_MS = 20_000
const SET = "return redis.call('SET', KEYS[1], ARGV[1])"
/** Their slots are on different nodes. */
const [FIRST, SECOND] = ['{a}:key', '{b}:key'] as const
const MOVING = '{c}:key'

let supervisor: Supervisor
let cluster: TestCluster
/** Without replicas: what is tested is which node gets a script. */
let redis: ReplicatedRedis
let other: Cluster

beforeAll(async () => {
  supervisor = new Supervisor()
  cluster = await startRedisCluster(supervisor, 2)
})

afterAll(() => supervisor?.stop({ force: true }))

beforeEach(async () => {
  const { url } = cluster
  const connection = connectRedis(url, { failFast: true, commandTimeoutMs: 2_000 })
  if (!(connection instanceof Cluster)) throw new Error('the connection is not one to a cluster')
  other = connection
  other.on('error', () => undefined)
  redis = new ReplicatedRedis(other, { url, replicas: 0, waitMs: 1_000, onError: () => undefined })
  await redis.ready(AbortSignal.timeout(DEADLINE_MS))
})

afterEach(async () => {
  redis.close()
  await closeRedis(other)
})

/** Moves the slot of a key, without its keys, to the other node. */
async function moveSlot(key: string): Promise<void> {
  const move = await SlotMove.of(cluster, key)
  await queryServer(move.source, (node) => node.flushall())
  await move.end()
}

it('a script whose slot has moved is rejected, and finds the new node when it is repeated', async () => {
  const set = redis.script(SET)
  expect(await set([MOVING], ['1'])).toBe('OK')
  await moveSlot(MOVING)
  await expect(set([MOVING], ['2'])).rejects.toThrow('MOVED')
  const rejectedAtMs = performance.now()
  await eventually(async () => expect(await set([MOVING], ['3'])).toBe('OK'))
  expect(performance.now() - rejectedAtMs).toBeLessThan(REDISCOVERY_MS / 2)
})

it('a node that rejects scripts for two seconds is looked for, although others confirm theirs', async () => {
  const refresh = vi.spyOn(other, 'refreshSlotsCache')
  const set = redis.script(SET)
  const failing = cluster.nodes[await cluster.nodeOf(FIRST)]?.port ?? 0
  const require = (replicas: number): Promise<unknown> =>
    queryServer(failing, (node) => node.config('SET', 'min-replicas-to-write', replicas))
  await require(1)
  onTestFinished(async () => {
    await require(0)
  })
  const startedMs = performance.now()
  while (performance.now() - startedMs < REDISCOVERY_MS + 500) {
    await expect(set([FIRST], ['1'])).rejects.toThrow('NOREPLICAS')
    expect(await set([SECOND], ['1'])).toBe('OK')
    await pause(100)
  }
  expect(refresh).toHaveBeenCalled()
})

it('a script whose slot is moving is rejected, and changes nothing', async () => {
  const set = redis.script(SET)
  const move = await SlotMove.of(cluster, FIRST)
  await eventually(async () => expect(await set([FIRST], ['1'])).toBe('OK'))
  await move.setSlot(move.source, 'MIGRATING', await idOf(move.target))
  onTestFinished(() => move.setSlot(move.source, 'STABLE'))
  await expect(set([FIRST], ['2'])).rejects.toThrow('non local key')
  expect(await queryServer(move.source, (node) => node.get(FIRST))).toBe('1')
})
