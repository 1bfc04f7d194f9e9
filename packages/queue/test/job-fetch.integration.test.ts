import { beforeEach, describe, expect, it, vi } from 'vitest'
import { fetchLimits } from '../src/job-fetch.ts'
import {
  chunkOf,
  ConsumerFixture,
  fetchIds,
  fetchMine,
  useTestRedis,
  WAIT_MS,
} from './support/consumer-fixture.ts'

// test/simulator compares the turns of workers, and what they fetch, with a model.

const server = useTestRedis()
let fixture: ConsumerFixture

beforeEach(() => {
  fixture = new ConsumerFixture(server.url)
})

describe('a fetch', () => {
  it('after a fetch that left chunks returns more than one run of the script may fetch, each with a lock', async () => {
    const ids = await fixture.addMany(2 * fetchLimits.jobsPerRunMax + 3)
    const consumer = fixture.openConsumer({ workerId: 'a-worker', lockDurationMs: 30_000 })
    const first = await fetchMine(consumer, fetchLimits.jobsMax)
    expect(first.chunks).toHaveLength(fetchLimits.jobsPerRunMax)
    expect(first.hasMore).toBe(true)
    const second = await fetchMine(consumer, fetchLimits.jobsMax)
    expect(second.hasMore).toBe(false)
    expect([...first.chunks, ...second.chunks].map(({ id }) => id)).toEqual(ids)
    const keys = ids.map((id) => fixture.lockKey(id))
    const locks = await fixture.redis.mget(keys)
    expect(new Set(locks).size).toBe(3)
    for (const lock of locks) expect(lock).toMatch(/^a-worker:\d+$/)
    const ttls = await Promise.all(keys.map((key) => fixture.redis.pttl(key)))
    expect(ttls).toSatisfy((all: number[]) => all.every((ttl) => ttl > 20_000 && ttl <= 30_000))
  })

  it('returns a delayed chunk when it is due by the clock of Redis, whatever the clock of the worker', async () => {
    const wallMs = Date.now
    await fixture.add('a-chunk', chunkOf('row'), { delay: 1_000 })
    const consumer = fixture.openConsumer()
    vi.spyOn(Date, 'now').mockImplementation(() => wallMs() + 3_600_000)
    expect(await fetchMine(consumer, 1)).toEqual({ chunks: [], hasMore: false })
    vi.spyOn(Date, 'now').mockImplementation(() => wallMs() - 3_600_000)
    await vi.waitFor(async () => expect(await fetchIds(consumer, 1)).toEqual(['a-chunk']), WAIT_MS)
  })

  it('does not return a chunk again that is held, and completes it with its new lock', async () => {
    await fixture.add('a-chunk')
    const consumer = fixture.openConsumer()
    await fetchMine(consumer, 1)
    await fixture.ledger.claim('a-batch', ['a-chunk'])
    // As after a lock that expired.
    await fixture.redis.del(fixture.lockKey('a-chunk'))
    await fixture.redis.rpoplpush(`${fixture.names.jobKey('')}active`, fixture.names.waitKey)
    expect(await fetchMine(consumer, 1)).toEqual({ chunks: [], hasMore: false })
    expect(consumer.heldChunks).toBe(1)
    expect(await fixture.counts()).toEqual({ active: 1 })
    await consumer.finish({ id: 'a-batch', members: ['a-chunk'] }, 0)
    expect(await fixture.counts()).toEqual({})
    expect(consumer.heldChunks).toBe(0)
  })

  it('without a result writes nothing to disk, with and without the turn, and while a chunk is delayed', async () => {
    const consumer = fixture.openConsumer()
    const other = fixture.openConsumer()
    await fixture.add('a-chunk', chunkOf('row'), { delay: 60_000 })
    await fetchMine(consumer, 1)
    const written = (): Promise<number> => fixture.statistic('persistence', 'aof_current_size')
    const before = await written()
    for (let n = 0; n < 5; n += 1) {
      await fetchMine(consumer, 64)
      expect(await other.fetch(64, { isBusy: false })).toBeUndefined()
    }
    expect(await written()).toBe(before)
  })

  it('returns the chunks of the runs that Redis did not reject, and reports that there may be more', async () => {
    const ids = await fixture.addMany(2 * fetchLimits.jobsPerRunMax)
    const consumer = fixture.openConsumer()
    await fetchIds(consumer, 1)
    // The second run finds a key of another type.
    const damaged = ids[fetchLimits.jobsPerRunMax + 1] ?? ''
    await fixture.redis.set(fixture.names.jobKey(damaged), 'not a job')
    const { chunks, hasMore } = await fetchMine(consumer, fetchLimits.jobsMax)
    expect(chunks.map(({ id }) => id)).toEqual(ids.slice(1).filter((id) => id !== damaged))
    expect(hasMore).toBe(true)
  })
})
