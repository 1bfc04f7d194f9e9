import { closeRedis } from '@sluice/harness/close-redis'
import { FaultProxy } from '@sluice/harness'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { ChunkConsumer } from '../src/chunk-consumer.ts'
import {
  chunkOf,
  ConsumerFixture,
  fetchIds,
  fetchMine,
  useTestRedis,
  WAIT_MS,
} from './support/consumer-fixture.ts'

const server = useTestRedis()
let fixture: ConsumerFixture

beforeEach(() => {
  fixture = new ConsumerFixture(server.url)
})

/** A connection to the same Redis through a proxy. */
async function openProxied(): Promise<{ readonly proxy: FaultProxy; readonly proxied: RedisConnection }> {
  const proxy = await FaultProxy.open(server.url)
  onTestFinished(() => proxy.down())
  const proxied = connectRedis(proxy.url, { failFast: false })
  proxied.on('error', () => undefined)
  onTestFinished(() => closeRedis(proxied))
  return { proxy, proxied }
}

describe('a chunk of an unknown format', () => {
  it.each([
    ['columns', { columns: '0123abcd' }],
    ['version', { v: 3 as 2 }],
  ])('waits for another worker, by the clock of Redis: its %s', async (_what, unknown) => {
    const wallMs = Date.now
    await fixture.add('new', { ...chunkOf('row'), ...unknown })
    await fixture.add('next')
    const consumer = fixture.openConsumer()
    vi.spyOn(Date, 'now').mockImplementation(() => wallMs() + 3_600_000)
    expect(await fetchIds(consumer, 2)).toEqual(['next'])
    expect(await fixture.counts()).toEqual({ active: 1, delayed: 1 })
    expect(await fetchIds(consumer, 1)).toEqual([])
    vi.restoreAllMocks()
    const [, score = '0'] = await fixture.redis.zrange(fixture.names.delayedKey, '0', '0', 'WITHSCORES')
    const dueInMs = Number(score) / 0x1000 - Date.now()
    expect(dueInMs).toBeGreaterThan(0)
    expect(dueInMs).toBeLessThanOrEqual(5_001)
    expect(await fixture.redis.hget(fixture.names.jobKey('new'), 'atm')).toBeNull()
  })
})

it('a chunk that is still held is not returned again, although it is fetched with a new lock', async () => {
  await fixture.add('a-chunk')
  const consumer = fixture.openConsumer()
  expect(await fetchIds(consumer, 1)).toEqual(['a-chunk'])
  // As after a lock that expired.
  await fixture.redis.del(fixture.lockKey('a-chunk'))
  await fixture.redis.rename(`${fixture.names.jobKey('')}active`, fixture.names.waitKey)
  expect(await fetchIds(consumer, 1)).toEqual([])
  expect(await fixture.counts()).toEqual({ active: 1 })
  expect(consumer.heldChunks).toBe(1)
})

it('a job that cannot be moved to the failed jobs does not keep the others from their worker', async () => {
  await fixture.addMany(2)
  await fixture.redis.hset(fixture.names.jobKey('chunk-0'), 'data', 'null')
  // A key of another type.
  await fixture.redis.set(fixture.names.failedKey, 'x')
  expect(await fetchIds(fixture.openConsumer(), 2)).toEqual(['chunk-1'])
  expect(fixture.warnings).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ chunkId: 'chunk-0' }),
    'chunk left to the stalled check',
  )
})

describe('load', () => {
  it('reads chunks in the order of their ids, and does not lock them', async () => {
    // More than one run of the script reads.
    const ids = (await fixture.addMany(40)).toReversed()
    const consumer = fixture.openConsumer()
    const chunks = await consumer.load(ids)
    expect(chunks?.map(({ id }) => id)).toEqual(ids)
    expect(chunks?.[0]?.frame).toEqual(chunkOf('row').frame)
    expect(consumer.heldChunks).toBe(0)
    expect(await fixture.counts()).toEqual({ waiting: ids.length })
    expect(await consumer.load([...ids, 'gone'])).toBeUndefined()
  })

  it('throws if a job has an unknown format', async () => {
    await fixture.add('new', { ...chunkOf('row'), v: 3 as 2 })
    await expect(fixture.openConsumer().load(['new'])).rejects.toThrow('unknown format')
  })
})

describe('the monitor of fetches', () => {
  const ready = { ready: true, reasons: [] }

  it('reports that Redis rejects writes, until one succeeds', async () => {
    const consumer = fixture.openConsumer()
    await fetchMine(consumer, 1)
    await fixture.whileConfigured('min-replicas-to-write', '1', async () => {
      for (const count of [0, 1])
        await expect(consumer.fetch(count, { isBusy: false })).rejects.toThrow('NOREPLICAS')
      expect(fixture.fetchMonitor.readiness.reasons.join('')).toContain('NOREPLICAS')
    })
    expect(fixture.warnings).toHaveBeenCalledTimes(2)
    await fetchMine(consumer, 0)
    expect(fixture.fetchMonitor.readiness).toEqual(ready)
  })

  it('reports a Redis that is a replica now, until it is a master again', async () => {
    const { proxied } = await openProxied()
    const consumer = fixture.openConsumer({ redis: proxied })
    await fetchMine(consumer, 1)
    await fixture.redis.call('REPLICAOF', '127.0.0.1', '1')
    onTestFinished(async () => void (await fixture.redis.call('REPLICAOF', 'NO', 'ONE')))
    const fetch = consumer.fetch(1, { isBusy: false })
    const reasons = (): string => fixture.fetchMonitor.readiness.reasons.join('')
    await vi.waitFor(() => expect(reasons()).toContain('READONLY'), WAIT_MS)
    await fixture.redis.call('REPLICAOF', 'NO', 'ONE')
    await fetch
    expect(fixture.fetchMonitor.readiness).toEqual(ready)
  })
})

/** A consumer with the turn. The reply to its next request that contains `text` is lost. */
async function openUnlucky(ids: readonly string[], fetched: number, text: string): Promise<ChunkConsumer> {
  const { proxy, proxied } = await openProxied()
  for (const id of ids) await fixture.add(id)
  const consumer = fixture.openConsumer({ redis: proxied, lockDurationMs: 1_000 })
  await fetchMine(consumer, fetched)
  proxy.cutAnswerTo(text)
  onTestFinished(() => expect(proxy.cuts).toBe(1))
  return consumer
}

describe('an operation whose reply is lost is sent again, and', () => {
  it('finishes a batch once', async () => {
    const consumer = await openUnlucky(['a-chunk'], 1, 'a-batch')
    await fixture.ledger.claim('a-batch', ['a-chunk'])
    expect(await consumer.finish({ id: 'a-batch', members: ['a-chunk'] }, 0)).toBe(true)
    expect(await fixture.counts()).toEqual({})
    expect(await fixture.redis.ttl(fixture.names.batchKey('a-batch'))).toBeLessThanOrEqual(300)
    expect(consumer.heldChunks).toBe(0)
  })

  it('requeues a chunk once', async () => {
    const consumer = await openUnlucky(['a-chunk', 'newer'], 1, 'a-chunk')
    await consumer.requeue(['a-chunk'], 'back')
    expect(await fixture.waiting()).toEqual(['newer', 'a-chunk'])
    expect(await fixture.counts()).toEqual({ waiting: 2 })
  })

  it('fetches other chunks. The lost ones return to the queue', async () => {
    const consumer = await openUnlucky(['first', 'second'], 0, fixture.names.turnKey)
    expect(await fetchIds(consumer, 1)).toEqual(['second'])
    expect(await fixture.counts()).toEqual({ active: 2 })
    await vi.waitFor(async () => expect(await fetchIds(consumer, 1)).toEqual(['first']), WAIT_MS)
    expect(consumer.heldChunks).toBe(2)
  })
})
