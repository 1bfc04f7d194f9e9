import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { BatchLedger, CONFIRMED_TTL_S } from '../src/batch-ledger.ts'
import { queueNames } from '../src/queue-names.ts'

const names = queueNames(`test-${randomUUID()}`)
let redis: RedisConnection
let ledger: BatchLedger

beforeAll(() => {
  redis = connectRedis(inject('services').redisUrl, { failFast: false })
  ledger = new BatchLedger(redis, names)
})

afterAll(() => {
  redis.disconnect()
})

/** Makes chunk ids, each with a job as the queue stores it. */
async function queued(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID())
  for (const id of ids) await redis.hset(names.jobKey(id), 'data', '{}')
  return ids
}

/** The records of a batch and its chunks. */
const keysOf = (batchId: string, ids: readonly string[]): string[] => [
  names.batchKey(batchId),
  ...ids.map((id) => names.chunkKey(id)),
]

const ttlsOf = (keys: readonly string[]): Promise<number[]> => Promise.all(keys.map((key) => redis.ttl(key)))

/** The values and TTLs of the records of a batch and its chunks. */
async function snapshot(batchId: string, ids: readonly string[]): Promise<unknown[]> {
  const owners = ids.map((id) => redis.get(names.chunkKey(id)))
  return Promise.all([redis.hgetall(names.batchKey(batchId)), ...owners, ttlsOf(keysOf(batchId, ids))])
}

describe('a claim', () => {
  it('persists a batch with its members in order', async () => {
    const ids = await queued(3)
    expect(await ledger.claim('b1', ids)).toEqual(['b1', 'b1', 'b1'])
    expect(await ledger.read('b1')).toEqual({ state: 'claimed', members: ids, splits: new Set() })
  })

  it('assigns a chunk to one batch only, and returns the batch that each chunk belongs to', async () => {
    const [a = '', b = '', c = ''] = await queued(3)
    await ledger.claim('b2', [a, b])
    expect(await ledger.claim('b3', [b, c, a])).toEqual(['b2', 'b3', 'b2'])
    expect(await ledger.read('b3')).toMatchObject({ members: [c] })
  })

  it('assigns a chunk to one batch only, however many workers claim it at the same time', async () => {
    const ids = await queued(20)
    const claims = await Promise.all(Array.from({ length: 10 }, (_, i) => ledger.claim(`race-${i}`, ids)))
    expect(new Set(claims.flat()).size).toBe(1)
  })

  it('changes nothing when it is sent again', async () => {
    const ids = await queued(2)
    await ledger.claim('b4', ids)
    await ledger.confirm('b4', ids, 0)
    expect(await ledger.claim('b4', ids.toReversed())).toEqual(['b4', 'b4'])
    expect(await ledger.read('b4')).toMatchObject({ state: 'confirmed', members: ids })
  })

  it('leaves out a chunk whose job does not exist, and does not persist an empty batch', async () => {
    const missing = randomUUID()
    expect(await ledger.claim('b5', [missing])).toEqual([undefined])
    expect(await ledger.read('b5')).toBeUndefined()
    expect(await redis.exists(names.chunkKey(missing))).toBe(0)
    const [a = '', b = ''] = await queued(2)
    expect(await ledger.claim('b11', [a, missing, b])).toEqual(['b11', undefined, 'b11'])
    expect(await ledger.read('b11')).toMatchObject({ members: [a, b] })
  })
})

describe('the records of a batch', () => {
  it('are kept without a limit until it is confirmed, then for 30 days, and after the release for minutes', async () => {
    const ids = await queued(2)
    await ledger.claim('b6', ids)
    const keys = keysOf('b6', ids)
    const ttls = (): Promise<number[]> => ttlsOf(keys)
    expect(await ttls()).toEqual([-1, -1, -1])
    await ledger.confirm('b6', ids, 0)
    expect(CONFIRMED_TTL_S).toBe(30 * 86_400)
    expect(Math.max(...(await ttls()))).toBeLessThanOrEqual(CONFIRMED_TTL_S)
    expect(Math.min(...(await ttls()))).toBeGreaterThan(CONFIRMED_TTL_S - 60)
    await ledger.release('b6', ids)
    expect(Math.max(...(await ttls()))).toBeLessThanOrEqual(300)
    expect(Math.min(...(await ttls()))).toBeGreaterThan(290)
  })

  it('are not kept longer by a confirmation that arrives after the release', async () => {
    const ids = await queued(1)
    await ledger.claim('b10', ids)
    await ledger.confirm('b10', ids, 0)
    await ledger.release('b10', ids)
    await ledger.confirm('b10', ids, 0)
    expect(await redis.ttl(names.batchKey('b10'))).toBeLessThanOrEqual(300)
  })

  it('have the values that workers of earlier versions read and write', async () => {
    const ids = await queued(2)
    await ledger.claim('b12', ids)
    const members = ids.join(' ')
    expect(await redis.hgetall(names.batchKey('b12'))).toEqual({ state: 'written', members })
    await ledger.recordSplit('b12', 'all')
    await ledger.confirm('b12', ids, 1)
    expect(await redis.hgetall(names.batchKey('b12'))).toEqual({
      state: 'inserted',
      members,
      'split:all': '1',
    })
    expect(await redis.get(names.chunkKey(ids[0] ?? ''))).toBe('b12')
  })
})

describe('a split', () => {
  it('is persisted', async () => {
    const ids = await queued(1)
    await ledger.claim('b7', ids)
    expect(await ledger.recordSplit('b7', 'all')).toBe(true)
    expect(await ledger.recordSplit('b7', '0-5')).toBe(true)
    expect((await ledger.read('b7'))?.splits).toEqual(new Set(['all', '0-5']))
  })

  it('is rejected for a confirmed batch', async () => {
    const ids = await queued(1)
    await ledger.claim('b9', ids)
    await ledger.confirm('b9', ids, 0)
    expect(await ledger.recordSplit('b9', 'all')).toBe(false)
    expect((await ledger.read('b9'))?.splits).toEqual(new Set())
  })
})

describe('a confirmation', () => {
  it.each([[['all'], 0] as const, [['all', '0-5', '5-10'], 2] as const])(
    'changes nothing if another worker has split more of the batch: %j, whose %d are known',
    async (ranges, known) => {
      const [batchId, ids] = [randomUUID(), await queued(2)]
      await ledger.claim(batchId, ids)
      for (const range of ranges) await ledger.recordSplit(batchId, range)
      const before = await snapshot(batchId, ids)
      expect(await ledger.confirm(batchId, ids, known)).toBe(false)
      expect(await snapshot(batchId, ids)).toEqual(before)
      expect(await ledger.read(batchId)).toEqual({ state: 'claimed', members: ids, splits: new Set(ranges) })
      expect(await ledger.recordSplit(batchId, '0-2')).toBe(true)
    },
  )

  it('is persisted if all splits are known, however often they were recorded', async () => {
    const ids = await queued(2)
    await ledger.claim('b13', ids)
    for (const range of ['all', '0-5', 'all', '0-5']) await ledger.recordSplit('b13', range)
    expect(await ledger.confirm('b13', ids, 1)).toBe(false)
    expect(await ledger.confirm('b13', ids, 2)).toBe(true)
    expect(await ledger.read('b13')).toEqual({
      state: 'confirmed',
      members: ids,
      splits: new Set(['all', '0-5']),
    })
  })

  it('of a batch without splits is persisted', async () => {
    const ids = await queued(1)
    await ledger.claim('b14', ids)
    expect(await ledger.confirm('b14', ids, 0)).toBe(true)
    expect(await ledger.read('b14')).toMatchObject({ state: 'confirmed', splits: new Set() })
  })

  it('of a confirmed or released batch succeeds, even if splits are unknown', async () => {
    const ids = await queued(1)
    const keys = keysOf('b15', ids)
    await ledger.claim('b15', ids)
    await ledger.recordSplit('b15', 'all')
    expect(await ledger.confirm('b15', ids, 1)).toBe(true)
    expect(await ledger.confirm('b15', ids, 0)).toBe(true)
    expect(Math.min(...(await ttlsOf(keys)))).toBeGreaterThan(CONFIRMED_TTL_S - 60)
    await ledger.release('b15', ids)
    expect(await ledger.confirm('b15', ids, 0)).toBe(true)
    expect(Math.max(...(await ttlsOf(keys)))).toBeLessThanOrEqual(300)
    expect(Math.min(...(await ttlsOf(keys)))).toBeGreaterThan(290)
  })
})

describe('a release', () => {
  it('ignores splits', async () => {
    const ids = await queued(1)
    await ledger.claim('b16', ids)
    await ledger.recordSplit('b16', 'all')
    await ledger.recordSplit('b16', '0-5')
    await ledger.release('b16', ids)
    const ttls = await ttlsOf(keysOf('b16', ids))
    expect(Math.max(...ttls)).toBeLessThanOrEqual(300)
    expect(Math.min(...ttls)).toBeGreaterThan(290)
    expect((await ledger.read('b16'))?.state).toBe('confirmed')
  })
})

it('does not create the record of an expired batch again', async () => {
  expect(await ledger.recordSplit('b8', 'all')).toBe(false)
  expect(await ledger.confirm('b8', [randomUUID()], 0)).toBe(true)
  expect(await redis.exists(names.batchKey('b8'))).toBe(0)
})
