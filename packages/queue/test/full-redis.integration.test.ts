import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import {
  chunkOf,
  ConsumerFixture,
  fetchIds,
  fetchMine,
  useTestRedis,
  WAIT_MS,
} from './support/consumer-fixture.ts'

// While Redis is above its maxmemory, it rejects the chunks of the API. Workers must be able to drain the queue, since nothing else
// frees memory.

const LOCK_MS = 1_000

const server = useTestRedis()
let fixture: ConsumerFixture

beforeEach(() => {
  fixture = new ConsumerFixture(server.url)
})

describe('while Redis is above its maxmemory', () => {
  it('the queue is drained', async () => {
    const ids = await fixture.addMany(100)
    const consumer = fixture.openConsumer()
    const delivered: string[] = []
    await fixture.whileFull(async () => {
      await expect(fixture.add('another')).rejects.toThrow('OOM')
      for (let batch = 0, hasMore = true; hasMore; batch += 1) {
        const fetch = await fetchMine(consumer, 64)
        const members = fetch.chunks.map(({ id }) => id)
        const id = `batch-${batch}`
        expect(await fixture.ledger.claim(id, members)).toEqual(members.map(() => id))
        expect(await fixture.split(id, ['all'])).toEqual([true])
        await fixture.ledger.renewLease(id, 'a-worker')
        expect(await consumer.finish({ id, members }, 1)).toBe(true)
        await fixture.ledger.endLease(id, 'a-worker')
        delivered.push(...members)
        hasMore = fetch.hasMore
      }
    })
    expect(delivered).toEqual(ids)
    expect(await fixture.counts()).toEqual({})
    expect(consumer.heldChunks).toBe(0)
  })

  it('each step is possible as the first one', async () => {
    await fixture.add('new', { ...chunkOf('row'), v: 3 as 2 })
    await fixture.addMany(4)
    await fixture.redis.hset(fixture.names.jobKey('chunk-3'), 'data', 'null')
    const consumer = fixture.openConsumer()
    await fixture.whileFull(async () => {
      expect(await fetchIds(consumer, 5)).toEqual(['chunk-0', 'chunk-1', 'chunk-2'])
      await consumer.requeue(['chunk-0'], 'back')
      await consumer.requeue(['chunk-1'], 'front')
      await consumer.fail('chunk-2', new Error('a bug'))
      await consumer.yieldTurn()
    })
    expect(await fixture.counts()).toEqual({ delayed: 1, waiting: 2, failed: 2 })
    expect(fixture.warnings).not.toHaveBeenCalled()
  })

  it('locks are renewed, and the chunks of a worker that died are requeued', async () => {
    await fixture.add('a-chunk')
    const consumer = fixture.openConsumer({ lockDurationMs: LOCK_MS })
    const survivor = fixture.openConsumer({ lockDurationMs: LOCK_MS })
    await fetchMine(consumer, 1)
    await fixture.whileFull(async () => {
      await sleep(2 * LOCK_MS)
      expect(await fixture.redis.exists(fixture.lockKey('a-chunk'))).toBe(1)
      expect(fixture.warnings).not.toHaveBeenCalled()
      await consumer.close()
      await vi.waitFor(async () => expect(await fetchIds(survivor, 1)).toEqual(['a-chunk']), WAIT_MS)
    })
  })
})
