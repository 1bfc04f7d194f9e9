import { beforeEach, describe, expect, it } from 'vitest'
import { FINISHED_PER_RUN_MAX } from '../src/batch-finish.ts'
import { CONFIRMED_TTL_S } from '../src/batch-ledger.ts'
import type { ChunkConsumer } from '../src/chunk-consumer.ts'
import { ConsumerFixture, fetchIds, useTestRedis } from './support/consumer-fixture.ts'

const DAY_S = 86_400
/** Tests of a batch's records use this id. */
const BATCH = 'a-batch'

const server = useTestRedis()
let fixture: ConsumerFixture
let consumer: ChunkConsumer

beforeEach(() => {
  fixture = new ConsumerFixture(server.url)
  consumer = fixture.openConsumer()
})

/** Adds chunks, fetches all of them, and claims them as one batch. @returns their ids */
async function claimed(count: number): Promise<string[]> {
  const ids = await fixture.addMany(count)
  const fetched: string[] = []
  while (fetched.length < count) fetched.push(...(await fetchIds(consumer, count - fetched.length)))
  await fixture.ledger.claim(BATCH, ids)
  return ids
}

/** The TTLs of the records of the batch and its chunks, in seconds. */
const ttls = (ids: readonly string[]): Promise<number[]> =>
  Promise.all(
    [fixture.names.batchKey(BATCH), ...ids.map((id) => fixture.names.chunkKey(id))].map((key) =>
      fixture.redis.ttl(key),
    ),
  )

async function expectReleased(ids: readonly string[]): Promise<void> {
  for (const ttl of await ttls(ids)) {
    expect(ttl).toBeGreaterThan(200)
    expect(ttl).toBeLessThanOrEqual(300)
  }
}

async function expectConfirmed(ids: readonly string[]): Promise<void> {
  expect(CONFIRMED_TTL_S).toBe(30 * DAY_S)
  for (const ttl of await ttls(ids)) {
    expect(ttl).toBeGreaterThan(29 * DAY_S)
    expect(ttl).toBeLessThanOrEqual(30 * DAY_S)
  }
}

/** Gives held jobs to another worker, as after a lock that expired. */
async function fetchByAnother(ids: readonly string[]): Promise<ChunkConsumer> {
  for (const id of ids) {
    await fixture.redis.del(fixture.lockKey(id))
    await fixture.redis.lrem(`${fixture.names.jobKey('')}active`, 0, id)
    await fixture.redis.rpush(fixture.names.waitKey, id)
  }
  await consumer.yieldTurn()
  const other = fixture.openConsumer()
  expect(await fetchIds(other, ids.length)).toHaveLength(ids.length)
  await other.yieldTurn()
  return other
}

describe('finish', () => {
  it.each([1, FINISHED_PER_RUN_MAX, FINISHED_PER_RUN_MAX + 1, 3 * FINISHED_PER_RUN_MAX])(
    'of a batch of %d chunks confirms it, completes its jobs and releases its records',
    async (count) => {
      const ids = await claimed(count)
      expect(await consumer.finish({ id: BATCH, members: ids }, 0)).toBe(true)
      expect(await fixture.counts()).toEqual({})
      expect([consumer.heldChunks, consumer.heldBytes]).toEqual([0, 0])
      expect(await fixture.ledger.read(BATCH)).toMatchObject({ state: 'confirmed', members: ids })
      await expectReleased(ids)
      const left = Object.keys(await fixture.content()).filter((key) => key.includes('logs:chunk-'))
      expect(left).toEqual([])
    },
  )

  it('persists the confirmation before it completes jobs: the records are as in earlier versions', async () => {
    const ids = await claimed(1)
    await consumer.finish({ id: BATCH, members: ids }, 0)
    expect(await fixture.redis.hgetall(fixture.names.batchKey(BATCH))).toEqual({
      state: 'inserted',
      members: ids.join(' '),
    })
    expect(await fixture.redis.get(fixture.names.chunkKey(ids[0] ?? ''))).toBe(BATCH)
  })

  it('changes nothing when it is repeated', async () => {
    const ids = await claimed(2)
    await consumer.finish({ id: BATCH, members: ids }, 0)
    await fixture.redis.expire(fixture.names.batchKey(BATCH), 250)
    expect(await consumer.finish({ id: BATCH, members: ids }, 0)).toBe(true)
    expect(await consumer.finish({ id: BATCH, members: ids }, undefined)).toBe(true)
    expect(await fixture.redis.ttl(fixture.names.batchKey(BATCH))).toBeLessThanOrEqual(250)
  })
})

describe('a confirmation', () => {
  it.each([
    ['the first insert', 1, 0],
    ['an earlier repair', 3, 2],
  ] as const)('of %s changes nothing if another repair has begun', async (_what, begun, known) => {
    const ids = await claimed(FINISHED_PER_RUN_MAX + 1)
    for (let repair = 1; repair <= begun; repair += 1) await fixture.split(BATCH, ['all', `0-${repair}`])
    const record = (): Promise<unknown> => fixture.redis.hgetall(fixture.names.batchKey(BATCH))
    const before = await record()
    expect(await consumer.finish({ id: BATCH, members: ids }, known)).toBe(false)
    expect(await record()).toEqual(before)
    expect(new Set(await ttls(ids))).toEqual(new Set([-1]))
    expect(await fixture.counts()).toEqual({ active: ids.length })
    expect(consumer.heldChunks).toBe(ids.length)
    expect(await fixture.split(BATCH, ['0-2'])).toEqual([true])
  })

  it('of the last repair is persisted', async () => {
    const ids = await claimed(2)
    await fixture.split(BATCH, ['all', '0-5', 'all', '0-5'])
    expect(await consumer.finish({ id: BATCH, members: ids }, 0)).toBe(false)
    expect(await consumer.finish({ id: BATCH, members: ids }, 1)).toBe(true)
    expect((await fixture.ledger.read(BATCH))?.splits).toEqual(new Set(['all', '0-5']))
    expect(await fixture.counts()).toEqual({})
  })

  it('that another worker has made is not repeated if Redis has lost it: the rows are not known', async () => {
    const ids = await claimed(1)
    expect(await consumer.finish({ id: BATCH, members: ids }, undefined)).toBe(false)
    expect(await fixture.ledger.read(BATCH)).toMatchObject({ state: 'claimed' })
    expect(await fixture.counts()).toEqual({ active: 1 })
  })
})

describe('a batch whose jobs several workers hold', () => {
  it('is kept for 30 days until the last job is completed, whichever worker completes it', async () => {
    const ids = await claimed(3)
    const other = await fetchByAnother(ids.slice(2))
    expect(await consumer.finish({ id: BATCH, members: ids }, 0)).toBe(true)
    expect(await fixture.counts()).toEqual({ active: 1 })
    await expectConfirmed(ids)
    expect(await other.finish({ id: BATCH, members: ids }, undefined)).toBe(true)
    expect(await fixture.counts()).toEqual({})
    await expectReleased(ids)
  })

  it('of more chunks than one run completes is kept for 30 days from the first run on', async () => {
    const ids = await claimed(2 * FINISHED_PER_RUN_MAX)
    // The second run finds a key of another type.
    await fixture.redis.set(fixture.names.jobKey(ids.at(-1) ?? ''), 'not a job')
    await expect(consumer.finish({ id: BATCH, members: ids }, 0)).rejects.toThrow('WRONGTYPE')
    expect(consumer.heldChunks).toBe(FINISHED_PER_RUN_MAX)
    await expectConfirmed(ids)
  })
})

describe('a held job', () => {
  it('that does not exist counts as completed', async () => {
    const ids = await claimed(2)
    await fixture.queue.remove(ids[0] ?? '')
    await fixture.redis.del(fixture.lockKey(ids[0] ?? ''), fixture.names.jobKey(ids[0] ?? ''))
    await consumer.finish({ id: BATCH, members: ids }, 0)
    expect(consumer.heldChunks).toBe(0)
    await expectReleased(ids)
  })

  it('stays held, and is not failed, if Redis rejects its completion', async () => {
    const ids = await claimed(2)
    await fixture.whileConfigured('min-replicas-to-write', '1', async () => {
      await expect(consumer.finish({ id: BATCH, members: ids }, 0)).rejects.toThrow('NOREPLICAS')
    })
    expect(consumer.heldChunks).toBe(2)
    expect(await fixture.counts()).toEqual({ active: 2 })
    expect(await fixture.ledger.read(BATCH)).toMatchObject({ state: 'claimed' })
    expect(await consumer.finish({ id: BATCH, members: ids }, 0)).toBe(true)
    expect(await fixture.counts()).toEqual({})
  })
})
