import { beforeEach, describe, expect, it } from 'vitest'
import type { Chunk } from '../src/chunk.ts'
import type { ChunkConsumer } from '../src/chunk-consumer.ts'
import { JobMover } from '../src/job-moves.ts'
import { chunkOf, ConsumerFixture, fetchIds, fetchMine, useTestRedis } from './support/consumer-fixture.ts'

const server = useTestRedis()
let fixture: ConsumerFixture
let consumer: ChunkConsumer

beforeEach(() => {
  fixture = new ConsumerFixture(server.url)
  consumer = fixture.openConsumer()
})

describe('requeue', () => {
  it.each([
    ['front', ['chunk-0', 'chunk-1', 'newer']],
    ['back', ['newer', 'chunk-0', 'chunk-1']],
  ] as const)('to the %s keeps the order of the chunks', async (end, expected) => {
    const ids = await fixture.addMany(2)
    await fetchMine(consumer, 2)
    await fixture.add('newer')
    await consumer.requeue(ids, end)
    expect(await fixture.waiting()).toEqual(expected)
    expect([consumer.heldChunks, consumer.heldBytes]).toEqual([0, 0])
    expect(await fetchIds(consumer, 3)).toEqual(expected)
  })

  it.each(['front', 'back'] as const)(
    'to the %s of more chunks than one run moves keeps their order',
    async (end) => {
      const ids = await fixture.addMany(130)
      const fetched: string[] = []
      while (fetched.length < ids.length) fetched.push(...(await fetchIds(consumer, 64)))
      await consumer.requeue(ids, end)
      expect(await fixture.waiting()).toEqual(ids)
      expect(await fixture.counts()).toEqual({ waiting: ids.length })
    },
  )

  it('leaves a chunk that another worker has locked, and ignores one that is not in hand', async () => {
    await fixture.addMany(3)
    await fetchMine(consumer, 1)
    await fixture.redis.set(fixture.lockKey('chunk-0'), 'another-token')
    await consumer.requeue(['chunk-0', 'chunk-1', 'unknown'], 'back')
    expect(await fixture.counts()).toEqual({ active: 1, waiting: 2 })
    expect(await fixture.waiting()).toEqual(['chunk-1', 'chunk-2'])
    expect(consumer.heldChunks).toBe(0)
  })

  it('changes nothing when it is repeated', async () => {
    await fixture.addMany(1)
    await fetchMine(consumer, 1)
    await consumer.requeue(['chunk-0'], 'front')
    const before = await fixture.content()
    await consumer.requeue(['chunk-0'], 'front')
    expect(await fixture.content()).toEqual(before)
  })

  it('to the back leaves a chunk that waits again, even if it is the next one', async () => {
    await fixture.addMany(1)
    await fetchMine(consumer, 1)
    await fixture.redis.del(fixture.lockKey('chunk-0'))
    const mover = new JobMover(fixture.redis, fixture.names)
    await fixture.redis.lmove(
      `${fixture.names.jobKey('')}active`,
      `${fixture.names.jobKey('')}wait`,
      'RIGHT',
      'RIGHT',
    )
    await fixture.add('newer')
    await mover.requeue([{ id: 'chunk-0', token: 'expired', bytes: 0 }], 'back')
    expect(await fixture.waiting()).toEqual(['chunk-0', 'newer'])
  })

  it('that Redis rejects keeps the chunks in hand', async () => {
    await fixture.addMany(1)
    await fetchMine(consumer, 1)
    await fixture.whileConfigured('min-replicas-to-write', '1', async () => {
      await expect(consumer.requeue(['chunk-0'], 'front')).rejects.toThrow('NOREPLICAS')
    })
    expect(consumer.heldChunks).toBe(1)
    expect(await fixture.counts()).toEqual({ active: 1 })
    await consumer.requeue(['chunk-0'], 'front')
    expect(await fixture.counts()).toEqual({ waiting: 1 })
  })
})

describe('fail', () => {
  it('moves a chunk to the failed jobs, complete and with the reason, and logs an error', async () => {
    const chunk = chunkOf('row\n')
    await fixture.add('a-chunk', chunk)
    await fetchMine(consumer, 1)
    await consumer.fail('a-chunk', new Error('a bug'))
    expect(await fixture.counts()).toEqual({ failed: 1 })
    const [job] = await fixture.queue.getFailed()
    expect(job).toMatchObject({ id: 'a-chunk', failedReason: 'a bug', data: chunk })
    expect(job?.stacktrace?.[0]).toContain('Error: a bug')
    expect(await fetchIds(consumer, 1)).toEqual([])
    expect(consumer.heldChunks).toBe(0)
    expect(fixture.errors).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ chunkId: 'a-chunk' }),
      'chunk moved to the failed jobs',
    )
  })

  it('leaves a chunk that another worker has locked, and logs no error', async () => {
    await fixture.add('a-chunk')
    await fetchMine(consumer, 1)
    await fixture.redis.set(fixture.lockKey('a-chunk'), 'another-token')
    await consumer.fail('a-chunk', new Error('a bug'))
    expect(await fixture.counts()).toEqual({ active: 1 })
    expect(fixture.errors).not.toHaveBeenCalled()
  })
})

describe('a job whose data is damaged', () => {
  it.each([
    ['null', null],
    ['an object of another program', { level: 'info' }],
    ['without a frame', { v: 1 }],
    ['with a frame that is not a text', { v: 1, rows: 1, bytes: 4, frame: 5 }],
    ['without a number of rows', { v: 1, bytes: 4, frame: '' }],
  ])('(%s) becomes a failed job, and the others are fetched', async (_what, data) => {
    await fixture.add('before')
    await fixture.add('damaged', data as Chunk)
    await fixture.add('after')
    expect(await fetchIds(consumer, 3)).toEqual(['before', 'after'])
    expect(await fixture.counts()).toEqual({ active: 2, failed: 1 })
    expect(consumer.heldChunks).toBe(2)
    expect(fixture.errors).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ chunkId: 'damaged' }),
      'chunk moved to the failed jobs',
    )
  })

  it('that is not JSON, or whose job was deleted by hand, becomes a failed job', async () => {
    await fixture.addMany(3)
    await fixture.redis.hset(fixture.names.jobKey('chunk-0'), 'data', '{"v":')
    await fixture.redis.del(fixture.names.jobKey('chunk-1'))
    expect(await fetchIds(consumer, 3)).toEqual(['chunk-2'])
    expect(await fixture.counts()).toEqual({ active: 1, failed: 2 })
  })
})
