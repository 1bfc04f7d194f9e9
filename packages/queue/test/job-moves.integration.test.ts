import { beforeEach, describe, expect, it } from 'vitest'
import { FRAME_FIELD } from '../src/chunk.ts'
import type { ChunkConsumer } from '../src/chunk-consumer.ts'
import { chunkOf, ConsumerFixture, fetchIds, fetchMine, useTestRedis } from './support/consumer-fixture.ts'

const server = useTestRedis()
let fixture: ConsumerFixture
let consumer: ChunkConsumer

beforeEach(() => {
  fixture = new ConsumerFixture(server.url)
  consumer = fixture.openConsumer()
})

describe('requeue', () => {
  it.each(['front', 'back'] as const)(
    'to the %s of more chunks than one run moves keeps their order',
    async (end) => {
      const ids = await fixture.addMany(130)
      while (consumer.heldChunks < ids.length) await fetchIds(consumer, 64)
      await fixture.add('newer')
      await consumer.requeue(ids, end)
      expect(await fixture.waiting()).toEqual(end === 'front' ? [...ids, 'newer'] : ['newer', ...ids])
      expect(consumer.heldChunks).toBe(0)
    },
  )

  it('that Redis rejects keeps the chunks held', async () => {
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

it('fail moves a chunk to the failed jobs, complete and with the reason, unless another worker has locked it', async () => {
  const chunk = chunkOf('row')
  const { frame, receivedMs: _receivedMs, ...data } = chunk
  for (const id of ['a-chunk', 'taken']) await fixture.add(id, chunk)
  await fetchMine(consumer, 2)
  await fixture.redis.set(fixture.lockKey('taken'), 'another-token')
  for (const id of ['a-chunk', 'taken']) await consumer.fail(id, new Error('a bug'))
  expect(await fixture.counts()).toEqual({ failed: 1, active: 1 })
  const [job] = await fixture.queue.getFailed()
  expect(job).toMatchObject({ id: 'a-chunk', failedReason: 'a bug', data })
  expect(await fixture.redis.hgetBuffer(fixture.names.jobKey('a-chunk'), FRAME_FIELD)).toEqual(frame)
  expect(job?.stacktrace?.[0]).toContain('Error: a bug')
  expect(consumer.heldChunks).toBe(0)
  expect(fixture.errors).toHaveBeenCalledOnce()
})

it('a job whose data is damaged, or that was deleted by hand, becomes a failed job, and the others are fetched', async () => {
  await fixture.addMany(4)
  await fixture.redis.hset(fixture.names.jobKey('chunk-0'), 'data', '{"v":')
  await fixture.redis.hset(fixture.names.jobKey('chunk-1'), 'data', '{"level":"info"}')
  await fixture.redis.del(fixture.names.jobKey('chunk-2'))
  expect(await fetchIds(consumer, 4)).toEqual(['chunk-3'])
  expect(await fixture.counts()).toEqual({ active: 1, failed: 3 })
  expect(consumer.heldChunks).toBe(1)
})
