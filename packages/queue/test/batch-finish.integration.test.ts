import { beforeEach, describe, expect, it } from 'vitest'
import { FINISHED_PER_RUN_MAX } from '../src/batch-finish.ts'
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

const expectReleased = async (ids: readonly string[]): Promise<void> =>
  expect(await ttls(ids)).toSatisfy((all: number[]) => all.every((ttl) => ttl > 200 && ttl <= 300))

const expectConfirmed = async (ids: readonly string[]): Promise<void> =>
  expect(await ttls(ids)).toSatisfy((all: number[]) =>
    all.every((ttl) => ttl > 29 * DAY_S && ttl <= 30 * DAY_S),
  )

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
  it.each([1, FINISHED_PER_RUN_MAX, 2 * FINISHED_PER_RUN_MAX + 1])(
    'of a batch of %d chunks confirms it, completes its jobs and releases its records, and a repetition changes nothing',
    async (count) => {
      const ids = await claimed(count)
      for (const repair of [0, 0, undefined])
        expect(await consumer.finish({ id: BATCH, members: ids }, repair)).toBe(true)
      expect(await fixture.counts()).toEqual({})
      expect(consumer.heldChunks).toBe(0)
      // The records have the values of earlier versions.
      expect(await fixture.redis.hgetall(fixture.names.batchKey(BATCH))).toEqual({
        state: 'inserted',
        members: ids.join(' '),
      })
      await expectReleased(ids)
      const left = Object.keys(await fixture.content()).filter((key) => key.includes('logs:chunk-'))
      expect(left).toEqual([])
    },
  )

  it.each([
    ['the first insert', 1, 0],
    ['an earlier repair', 3, 2],
    // Redis has lost a confirmation that another worker made: the rows are not known.
    ['another worker', 0, undefined],
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
    expect(await consumer.finish({ id: BATCH, members: ids }, begun)).toBe(true)
  })

  it('keeps the records for 30 days until the last job is completed, whichever worker completes it', async () => {
    const ids = await claimed(3)
    const other = await fetchByAnother(ids.slice(2))
    expect(await consumer.finish({ id: BATCH, members: ids }, 0)).toBe(true)
    expect(await fixture.counts()).toEqual({ active: 1 })
    await expectConfirmed(ids)
    expect(await other.finish({ id: BATCH, members: ids }, undefined)).toBe(true)
    expect(await fixture.counts()).toEqual({})
    await expectReleased(ids)
  })

  it('keeps the records for 30 days from the first of several runs on', async () => {
    const ids = await claimed(2 * FINISHED_PER_RUN_MAX)
    // The second run finds a key of another type.
    await fixture.redis.set(fixture.names.jobKey(ids.at(-1) ?? ''), 'not a job')
    await expect(consumer.finish({ id: BATCH, members: ids }, 0)).rejects.toThrow('WRONGTYPE')
    expect(consumer.heldChunks).toBe(FINISHED_PER_RUN_MAX)
    await expectConfirmed(ids)
  })

  it('keeps the jobs held, and fails none, if Redis rejects it', async () => {
    const ids = await claimed(2)
    await fixture.whileConfigured('min-replicas-to-write', '1', async () => {
      await expect(consumer.finish({ id: BATCH, members: ids }, 0)).rejects.toThrow('NOREPLICAS')
    })
    expect(consumer.heldChunks).toBe(2)
    expect(await fixture.counts()).toEqual({ active: 2 })
    expect(await fixture.ledger.read(BATCH)).toMatchObject({ state: 'claimed' })
  })
})
