import { Supervisor } from '@sluice/local'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { startRedisCluster } from '../../../test/scaling/redis-servers.ts'
import type { ChunkConsumer } from '../src/chunk-consumer.ts'
import { queueNames } from '../src/queue-names.ts'
import { ConsumerFixture, fetchIds, fetchMine, useTestRedis } from './support/consumer-fixture.ts'

/** Longer than a busy machine delays a renewal. */
const LOCK_MS = 4_000
const HOUR_MS = 3_600_000

const server = useTestRedis()
let fixture: ConsumerFixture

beforeEach(() => {
  fixture = new ConsumerFixture(server.url)
})

describe('the locks of held chunks', () => {
  it.each([-HOUR_MS, HOUR_MS])('do not expire while the clock is set by %d ms', async (stepMs) => {
    // More locks than one run of the script renews.
    const ids = await fixture.addMany(300)
    const open = (): ChunkConsumer => fixture.openConsumer({ lockDurationMs: LOCK_MS })
    const [consumer, other] = [open(), open()]
    const wallMs = Date.now
    while ((await fetchMine(consumer, 64)).hasMore) expect(consumer.heldChunks).toBeGreaterThan(0)
    vi.spyOn(Date, 'now').mockImplementation(() => wallMs() + stepMs)
    await consumer.yieldTurn()
    const endMs = performance.now() + 1.5 * LOCK_MS
    while (performance.now() < endMs) {
      // It would find a chunk stalled.
      expect(await fetchIds(other, 1)).toEqual([])
      await sleep(LOCK_MS / 20)
    }
    expect(consumer.heldChunks).toBe(ids.length)
    expect(await fixture.counts()).toEqual({ active: ids.length })
    expect(fixture.warnings).not.toHaveBeenCalled()
  })

  it('are renewed on a Redis Cluster, by the node of each shard', async () => {
    const supervisor = new Supervisor()
    onTestFinished(() => supervisor.stop({ force: true }))
    const cluster = await startRedisCluster(supervisor, 2)
    const nodesOf = (prefix: string) =>
      Promise.all([0, 1].map((shard) => cluster.nodeOf(queueNames(prefix, shard).waitKey)))
    let prefix = 'a'
    while (new Set(await nodesOf(prefix)).size < 2) prefix += 'a'
    for (const shard of [0, 1]) {
      const clustered = new ConsumerFixture(cluster.url, queueNames(prefix, shard))
      const ids = await clustered.addMany(2)
      await fetchMine(clustered.openConsumer({ lockDurationMs: 2 * LOCK_MS }), ids.length)
      const keys = ids.map((id) => clustered.lockKey(id))
      for (const key of keys) await clustered.redis.pexpire(key, 1.25 * LOCK_MS)
      for (const key of keys)
        await expect.poll(() => clustered.redis.pttl(key)).toBeGreaterThan(1.5 * LOCK_MS)
    }
  })
})
