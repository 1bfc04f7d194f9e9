import { closeRedis, connectRedis, plainRedis, type RedisConnection } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { BatchLedger, type BatchRepair, LEASE_TTL_MS } from '../src/batch-ledger.ts'
import { queueNames } from '../src/queue-names.ts'

const names = queueNames(`test-${randomUUID()}`)
let redis: RedisConnection
let ledger: BatchLedger

beforeAll(() => {
  redis = connectRedis(inject('services').redisUrl, { failFast: false })
  ledger = new BatchLedger(plainRedis(redis), names)
})

afterAll(async () => {
  await closeRedis(redis)
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

/** As `ChunkConsumer.finish`. */
const beginRepair = async (batchId: string, workerId = 'a-worker'): Promise<BatchRepair> => {
  const repair = await ledger.beginRepair(batchId, workerId)
  if (repair === undefined) throw new Error('another worker has the lease')
  return repair
}

const confirm = (batchId: string): Promise<unknown> =>
  redis.hset(names.batchKey(batchId), 'state', 'inserted')

describe('a claim', () => {
  it('persists a batch with its members in order', async () => {
    const ids = await queued(3)
    expect(await ledger.claim('b1', ids)).toEqual(['b1', 'b1', 'b1'])
    expect(await ledger.read('b1')).toEqual({ state: 'claimed', members: ids, splits: new Set(), repairs: 0 })
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
    await confirm('b4')
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
  it('are kept without a limit until the batch is confirmed', async () => {
    const ids = await queued(2)
    await ledger.claim('b6', ids)
    await ledger.recordSplit('b6', 'all', (await beginRepair('b6')).number)
    expect(await Promise.all(keysOf('b6', ids).map((key) => redis.ttl(key)))).toEqual([-1, -1, -1])
  })

  it('have the values that workers of earlier versions read and write', async () => {
    const ids = await queued(2)
    await ledger.claim('b12', ids)
    const members = ids.join(' ')
    expect(await redis.hgetall(names.batchKey('b12'))).toEqual({ state: 'written', members })
    await ledger.recordSplit('b12', 'all', (await beginRepair('b12')).number)
    expect(await redis.hgetall(names.batchKey('b12'))).toEqual({
      state: 'written',
      members,
      repairs: '1',
      'split:all': '1',
    })
    expect(await redis.get(names.chunkKey(ids[0] ?? ''))).toBe('b12')
  })
})

describe('a split', () => {
  it('is persisted', async () => {
    const ids = await queued(1)
    await ledger.claim('b7', ids)
    const { number, splits } = await beginRepair('b7')
    expect(splits).toEqual(new Set())
    expect(await ledger.recordSplit('b7', 'all', number)).toBe(true)
    expect(await ledger.recordSplit('b7', '0-5', number)).toBe(true)
    expect((await ledger.read('b7'))?.splits).toEqual(new Set(['all', '0-5']))
    expect((await beginRepair('b7')).splits).toEqual(new Set(['all', '0-5']))
  })

  it('is rejected if a later repair has begun, of the same worker or of another one', async () => {
    const ids = await queued(1)
    await ledger.claim('b10', ids)
    const first = await beginRepair('b10')
    const second = await beginRepair('b10')
    await expect(ledger.recordSplit('b10', 'all', first.number)).rejects.toThrow('another repair')
    await ledger.endLease('b10', 'a-worker')
    const third = await beginRepair('b10', 'another')
    await expect(ledger.recordSplit('b10', 'all', second.number)).rejects.toThrow('another repair')
    expect((await ledger.read('b10'))?.splits).toEqual(new Set())
    expect(await ledger.recordSplit('b10', 'all', third.number)).toBe(true)
  })

  it('is rejected for a confirmed batch', async () => {
    const ids = await queued(1)
    await ledger.claim('b9', ids)
    await confirm('b9')
    expect(await ledger.recordSplit('b9', 'all', (await beginRepair('b9')).number)).toBe(false)
    expect((await ledger.read('b9'))?.splits).toEqual(new Set())
  })
})

const leftMs = (batchId: string): Promise<number> => redis.pttl(names.leaseKey(batchId))

describe('the lease of a batch', () => {
  it('belongs to one worker, until this worker ends it', async () => {
    expect(await ledger.beginRepair('b20', 'a-worker')).toBeDefined()
    expect(await ledger.beginRepair('b20', 'another')).toBeUndefined()
    await ledger.endLease('b20', 'another')
    expect(await ledger.beginRepair('b20', 'another')).toBeUndefined()
    expect(await ledger.beginRepair('b21', 'another')).toBeDefined()
    await ledger.endLease('b20', 'a-worker')
    expect(await ledger.beginRepair('b20', 'another')).toBeDefined()
  })

  it('expires after its worker died, and is extended while this worker recovers the batch', async () => {
    await beginRepair('b22')
    expect(LEASE_TTL_MS).toBe(15_000)
    expect(await leftMs('b22')).toBeGreaterThan(10_000)
    expect(await leftMs('b22')).toBeLessThanOrEqual(LEASE_TTL_MS)
    await redis.pexpire(names.leaseKey('b22'), 1_000)
    expect(await ledger.beginRepair('b22', 'another')).toBeUndefined()
    await ledger.renewLease('b22', 'another')
    expect(await leftMs('b22')).toBeLessThanOrEqual(1_000)
    await ledger.renewLease('b22', 'a-worker')
    expect(await leftMs('b22')).toBeGreaterThan(10_000)
  })

  it('that has expired is not taken again by an extension', async () => {
    await ledger.renewLease('b23', 'a-worker')
    expect(await redis.exists(names.leaseKey('b23'))).toBe(0)
  })
})

it('does not create the record of an expired batch again', async () => {
  expect(await ledger.recordSplit('b8', 'all', (await beginRepair('b8')).number)).toBe(false)
  expect(await redis.exists(names.batchKey('b8'))).toBe(0)
})
