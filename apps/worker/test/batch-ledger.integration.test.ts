import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { BatchLedger } from '../src/batch-ledger.ts'

const names = redisNames(`test-${randomUUID()}`)
let redis: RedisConnection
let ledger: BatchLedger

beforeAll(() => {
  redis = connectRedis(inject('services').redisUrl, { failFast: false })
  ledger = new BatchLedger(redis, names)
})

afterAll(() => {
  redis.disconnect()
})

/** Makes ids with a job each, as the queue has them. */
async function queued(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID())
  for (const id of ids) await redis.hset(names.jobKey(id), 'data', '{}')
  return ids
}

describe('BatchLedger', () => {
  it('writes a batch down with its members in order', async () => {
    const ids = await queued(3)
    expect(await ledger.claim('b1', ids)).toEqual(['b1', 'b1', 'b1'])
    expect(await ledger.read('b1')).toEqual({ state: 'written', members: ids, splits: new Set() })
  })

  it('gives a chunk to one batch only, and tells whose it is', async () => {
    const [a = '', b = '', c = ''] = await queued(3)
    await ledger.claim('b2', [a, b])
    expect(await ledger.claim('b3', [b, c, a])).toEqual(['b2', 'b3', 'b2'])
    expect(await ledger.read('b3')).toMatchObject({ members: [c] })
  })

  it('gives a chunk to one batch only, however many ask at once', async () => {
    const ids = await queued(20)
    const claims = await Promise.all(Array.from({ length: 10 }, (_, i) => ledger.claim(`race-${i}`, ids)))
    expect(new Set(claims.flat()).size).toBe(1)
  })

  it('changes nothing when a claim is sent again', async () => {
    const ids = await queued(2)
    await ledger.claim('b4', ids)
    await ledger.confirm('b4', ids)
    expect(await ledger.claim('b4', ids.toReversed())).toEqual(['b4', 'b4'])
    expect(await ledger.read('b4')).toMatchObject({ state: 'inserted', members: ids })
  })

  it('refuses a chunk whose job is gone, and writes no batch of nothing down', async () => {
    expect(await ledger.claim('b5', [randomUUID()])).toEqual([''])
    expect(await ledger.read('b5')).toBeUndefined()
  })

  it('remembers a batch without end until it is confirmed, then for weeks, then for minutes', async () => {
    const ids = await queued(2)
    await ledger.claim('b6', ids)
    const keys = [names.batchKey('b6'), ...ids.map((id) => names.chunkKey(id))]
    const ttls = (): Promise<number[]> => Promise.all(keys.map((key) => redis.ttl(key)))
    expect(await ttls()).toEqual([-1, -1, -1])
    await ledger.confirm('b6', ids)
    expect(Math.min(...(await ttls()))).toBeGreaterThan(29 * 86_400)
    await ledger.release('b6', ids)
    expect(Math.max(...(await ttls()))).toBeLessThanOrEqual(300)
    expect(Math.min(...(await ttls()))).toBeGreaterThan(290)
  })

  it('does not remember a released batch for longer because somebody confirms it late', async () => {
    const ids = await queued(1)
    await ledger.claim('b10', ids)
    await ledger.confirm('b10', ids)
    await ledger.release('b10', ids)
    await ledger.confirm('b10', ids)
    expect(await redis.ttl(names.batchKey('b10'))).toBeLessThanOrEqual(300)
  })

  it('keeps what was split', async () => {
    const ids = await queued(1)
    await ledger.claim('b7', ids)
    expect(await ledger.recordSplit('b7', 'all')).toBe(true)
    expect(await ledger.recordSplit('b7', '0-5')).toBe(true)
    expect((await ledger.read('b7'))?.splits).toEqual(new Set(['all', '0-5']))
  })

  it('splits no batch that was inserted', async () => {
    const ids = await queued(1)
    await ledger.claim('b9', ids)
    await ledger.confirm('b9', ids)
    expect(await ledger.recordSplit('b9', 'all')).toBe(false)
    expect((await ledger.read('b9'))?.splits).toEqual(new Set())
  })

  it('does not bring a forgotten batch back', async () => {
    expect(await ledger.recordSplit('b8', 'all')).toBe(false)
    await ledger.confirm('b8', [randomUUID()])
    expect(await redis.exists(names.batchKey('b8'))).toBe(0)
  })
})
