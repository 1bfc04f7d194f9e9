import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { encodeChunk } from '../src/chunk.ts'
import type { ChunkConsumer } from '../src/chunk-consumer.ts'
import type { ChunkQueue } from '../src/chunk-queue.ts'
import { FailedChunks } from '../src/failed-chunks.ts'
import { queuedRows, readRowTotals, type RowTotals } from '../src/queue-names.ts'
import { ConsumerFixture, fetchIds, useTestRedis } from './support/consumer-fixture.ts'

const WITHIN_MS = 10_000

const server = useTestRedis()
let fixture: ConsumerFixture
let queue: ChunkQueue
let consumer: ChunkConsumer

beforeEach(() => {
  fixture = new ConsumerFixture(server.url)
  queue = fixture.openChunkQueue()
  consumer = fixture.openConsumer()
})

/** Adds a chunk with this many rows. */
async function add(id: string, rows: number): Promise<void> {
  const text = Buffer.from('row\n'.repeat(rows))
  await queue.add(id, encodeChunk(rows, text), performance.now() + WITHIN_MS)
}

async function totals(): Promise<RowTotals> {
  return readRowTotals(await fixture.redis.hgetall(fixture.names.totalsKey))
}

function openFailed(): FailedChunks {
  const { redis, names } = fixture
  const failed = new FailedChunks({ redis, shards: [names], makeId: () => 'batch-of-retry' })
  onTestFinished(() => failed.close())
  return failed
}

/** Fetches chunks, and claims them as one batch. */
async function claim(batchId: string, ids: readonly string[]): Promise<void> {
  await fetchIds(consumer, ids.length)
  await fixture.ledger.claim(batchId, ids)
}

describe('the totals', () => {
  it('count the rows of a chunk once, however often its add is repeated', async () => {
    await add('one', 3)
    await add('one', 3)
    await add('two', 4)
    expect(await totals()).toMatchObject({ added: 7 })
  })

  it('do not count a chunk again that is added again after it was delivered', async () => {
    await add('one', 3)
    await claim('a-batch', ['one'])
    const rows = { inserted: 3, deadLettered: 0 }
    await consumer.finish({ id: 'a-batch', members: ['one'], rows }, 0)
    await add('one', 3)
    expect(await fixture.waiting()).toEqual(['one'])
    expect(await totals()).toEqual({ added: 3, inserted: 3, deadLettered: 0, removed: 0 })
  })

  it('count the rows of a batch when it is confirmed, and not again', async () => {
    await add('one', 3)
    await add('two', 4)
    await claim('a-batch', ['one', 'two'])
    const batch = { id: 'a-batch', members: ['one', 'two'], rows: { inserted: 5, deadLettered: 2 } }
    expect(queuedRows(await totals())).toBe(7)
    await consumer.finish(batch, 0)
    await consumer.finish(batch, 0)
    expect(await totals()).toEqual({ added: 7, inserted: 5, deadLettered: 2, removed: 0 })
    expect(queuedRows(await totals())).toBe(0)
  })

  it('do not count a batch whose confirmation is rejected', async () => {
    await add('one', 3)
    await claim('a-batch', ['one'])
    await fixture.ledger.beginRepair('a-batch', 'another-worker')
    const rows = { inserted: 3, deadLettered: 0 }
    expect(await consumer.finish({ id: 'a-batch', members: ['one'], rows }, 0)).toBe(false)
    expect(await totals()).toMatchObject({ inserted: 0 })
  })

  it('count the rows of failed chunks that an operator deletes, and not those that are stored', async () => {
    await add('one', 3)
    await add('two', 4)
    await claim('a-batch', ['one'])
    await fetchIds(consumer, 1)
    for (const id of ['one', 'two']) await consumer.fail(id, new Error('x'))
    const rows = { inserted: 3, deadLettered: 0 }
    await consumer.finish({ id: 'a-batch', members: ['one'], rows }, 0)
    // When Redis is full, an operator may want to delete chunks.
    await fixture.whileFull(() => openFailed().purge('all'))
    expect(await fixture.counts()).toEqual({})
    expect(await fixture.redis.keys(`${fixture.names.jobKey('')}t*`)).toEqual([])
    expect(await totals()).toEqual({ added: 7, inserted: 3, deadLettered: 0, removed: 4 })
  })

  it('count the rows of a deleted chunk whose format is unknown', async () => {
    await add('one', 3)
    await fetchIds(consumer, 1)
    await consumer.fail('one', new Error('x'))
    await fixture.redis.hset(fixture.names.jobKey('one'), 'data', '{"v":9,"rows":3}')
    await openFailed().purge(['one'])
    expect(await totals()).toMatchObject({ removed: 3 })
  })
})
