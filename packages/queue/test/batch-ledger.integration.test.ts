import { beforeEach, describe, expect, inject, it } from 'vitest'
import { type BatchLedger, type BatchRepair, LEASE_TTL_MS } from '../src/batch-ledger.ts'
import type { QueueNames } from '../src/queue-names.ts'
import { ConsumerFixture } from './support/consumer-fixture.ts'

// test/simulator compares the replies of each script to any sequence of steps with a model.

const BATCH = 'a-batch'

let fixture: ConsumerFixture
let ledger: BatchLedger
let names: QueueNames

beforeEach(() => {
  fixture = new ConsumerFixture(inject('services').redisUrl)
  ;({ ledger, names } = fixture)
})

const beginRepair = async (workerId = 'a-worker'): Promise<BatchRepair> => {
  const repair = await ledger.beginRepair(BATCH, workerId)
  if (repair === undefined) throw new Error('another worker has the lease')
  return repair
}

describe('a claim', () => {
  it('persists a batch with its members in order', async () => {
    const ids = await fixture.addMany(3)
    expect(await ledger.claim(BATCH, ids)).toEqual([BATCH, BATCH, BATCH])
    expect(await ledger.read(BATCH)).toEqual({
      state: 'claimed',
      members: ids,
      splits: new Set(),
      repairs: 0,
    })
  })

  it('assigns a chunk to one batch only, and returns the batch that each chunk belongs to', async () => {
    const [a = '', b = '', c = ''] = await fixture.addMany(3)
    await ledger.claim(BATCH, [a, b])
    expect(await ledger.claim('another', [b, c, a])).toEqual([BATCH, 'another', BATCH])
    expect(await ledger.read('another')).toMatchObject({ members: [c] })
  })

  it('assigns a chunk to one batch only, however many workers claim it at the same time', async () => {
    const ids = await fixture.addMany(20)
    const claims = await Promise.all(Array.from({ length: 10 }, (_, i) => ledger.claim(`race-${i}`, ids)))
    expect(new Set(claims.flat()).size).toBe(1)
  })

  it('leaves out a chunk whose job does not exist, and does not persist an empty batch', async () => {
    expect(await ledger.claim(BATCH, ['gone'])).toEqual([undefined])
    expect(await ledger.read(BATCH)).toBeUndefined()
    const [a = '', b = ''] = await fixture.addMany(2)
    expect(await ledger.claim(BATCH, [a, 'gone', b])).toEqual([BATCH, undefined, BATCH])
    expect(await ledger.read(BATCH)).toMatchObject({ members: [a, b] })
    expect(await fixture.redis.exists(names.chunkKey('gone'))).toBe(0)
  })
})

it('the records of a batch have the values of earlier versions, and do not expire before the confirmation', async () => {
  const ids = await fixture.addMany(2)
  const record = (): Promise<unknown> => fixture.redis.hgetall(names.batchKey(BATCH))
  const claimed = { state: 'written', members: ids.join(' ') }
  await ledger.claim(BATCH, ids)
  expect(await record()).toEqual(claimed)
  await ledger.recordSplit(BATCH, 'all', (await beginRepair()).number)
  expect(await record()).toEqual({ ...claimed, repairs: '1', 'split:all': '1' })
  expect(await fixture.redis.get(names.chunkKey(ids[0] ?? ''))).toBe(BATCH)
  for (const key of [names.batchKey(BATCH), ...ids.map((id) => names.chunkKey(id))])
    expect(await fixture.redis.ttl(key)).toBe(-1)
})

describe('a split', () => {
  beforeEach(async () => {
    await ledger.claim(BATCH, await fixture.addMany(1))
  })

  it('is persisted', async () => {
    const { number, splits } = await beginRepair()
    expect(splits).toEqual(new Set())
    expect(await ledger.recordSplit(BATCH, 'all', number)).toBe(true)
    expect(await ledger.recordSplit(BATCH, '0-5', number)).toBe(true)
    expect((await ledger.read(BATCH))?.splits).toEqual(new Set(['all', '0-5']))
    expect((await beginRepair()).splits).toEqual(new Set(['all', '0-5']))
  })

  it('is rejected if a later repair has begun, of the same worker or of another one', async () => {
    const first = await beginRepair()
    const second = await beginRepair()
    await expect(ledger.recordSplit(BATCH, 'all', first.number)).rejects.toThrow('another repair')
    await ledger.endLease(BATCH, 'a-worker')
    const third = await beginRepair('another')
    await expect(ledger.recordSplit(BATCH, 'all', second.number)).rejects.toThrow('another repair')
    expect((await ledger.read(BATCH))?.splits).toEqual(new Set())
    expect(await ledger.recordSplit(BATCH, 'all', third.number)).toBe(true)
  })

  it('is rejected for a confirmed batch', async () => {
    await fixture.redis.hset(names.batchKey(BATCH), 'state', 'inserted')
    expect(await ledger.recordSplit(BATCH, 'all', (await beginRepair()).number)).toBe(false)
    expect((await ledger.read(BATCH))?.splits).toEqual(new Set())
  })
})

it('a lease belongs to one worker, which extends and ends it', async () => {
  const leftMs = (): Promise<number> => fixture.redis.pttl(names.leaseKey(BATCH))
  await beginRepair()
  expect(LEASE_TTL_MS).toBe(15_000)
  expect(await leftMs()).toBeGreaterThan(10_000)
  expect(await leftMs()).toBeLessThanOrEqual(LEASE_TTL_MS)
  await fixture.redis.pexpire(names.leaseKey(BATCH), 5_000)
  await ledger.endLease(BATCH, 'another')
  await ledger.renewLease(BATCH, 'another')
  expect(await ledger.beginRepair(BATCH, 'another')).toBeUndefined()
  expect(await leftMs()).toBeLessThanOrEqual(5_000)
  await ledger.renewLease(BATCH, 'a-worker')
  expect(await leftMs()).toBeGreaterThan(10_000)
  await ledger.endLease(BATCH, 'a-worker')
  expect(await ledger.beginRepair(BATCH, 'another')).toBeDefined()
})
