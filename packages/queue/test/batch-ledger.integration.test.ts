import { beforeEach, describe, expect, inject, it } from 'vitest'
import type { BatchLedger } from '../src/batch-ledger.ts'
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

describe('a claim', () => {
  it('assigns a chunk to one batch only, however many workers claim it at the same time', async () => {
    const ids = await fixture.addMany(20)
    const claims = await Promise.all(Array.from({ length: 10 }, (_, i) => ledger.claim(`race-${i}`, ids)))
    expect(new Set(claims.flat()).size).toBe(1)
    const [[batchId = ''] = []] = claims
    expect(await ledger.read(batchId)).toMatchObject({ state: 'claimed', members: ids })
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
  expect(await fixture.split(BATCH, ['all'])).toEqual([true])
  expect(await record()).toEqual({ ...claimed, repairs: '1', 'split:all': '1' })
  expect(await fixture.redis.get(names.chunkKey(ids[0] ?? ''))).toBe(BATCH)
  for (const key of [names.batchKey(BATCH), ...ids.map((id) => names.chunkKey(id))])
    expect(await fixture.redis.ttl(key)).toBe(-1)
  await fixture.redis.hset(names.batchKey(BATCH), 'state', 'inserted')
  expect(await fixture.split(BATCH, ['0-5'])).toEqual([false])
})

it('a split is rejected if a later repair has begun, of the same worker or of another one', async () => {
  await ledger.claim(BATCH, await fixture.addMany(1))
  const repairOf = async (workerId: string): Promise<number> =>
    (await ledger.beginRepair(BATCH, workerId))?.number ?? -1
  const [first, second] = [await repairOf('a-worker'), await repairOf('a-worker')]
  await expect(ledger.recordSplit(BATCH, 'all', first)).rejects.toThrow('another repair')
  await ledger.endLease(BATCH, 'a-worker')
  const third = await repairOf('another')
  await expect(ledger.recordSplit(BATCH, 'all', second)).rejects.toThrow('another repair')
  expect((await ledger.read(BATCH))?.splits).toEqual(new Set())
  expect(await ledger.recordSplit(BATCH, 'all', third)).toBe(true)
})
