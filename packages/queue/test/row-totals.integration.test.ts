import { beforeEach, expect, it, onTestFinished } from 'vitest'
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

/** Fetches chunks, and claims them as one batch. */
async function claim(batchId: string, ids: readonly string[]): Promise<void> {
  await fetchIds(consumer, ids.length)
  await fixture.ledger.claim(batchId, ids)
}

// test/simulator compares the totals after any sequence of adds, claims and finishes with a model.

it('the totals count a chunk once, however often it is added, and its rows when their batch is confirmed', async () => {
  for (const [id, rows] of [
    ['one', 3],
    ['one', 3],
    ['two', 4],
  ] as const)
    await add(id, rows)
  await claim('a-batch', ['one', 'two'])
  const batch = { id: 'a-batch', members: ['one', 'two'], rows: { inserted: 5, deadLettered: 2 } }
  expect(queuedRows(await totals())).toBe(7)
  await consumer.finish(batch, 0)
  await consumer.finish(batch, 0)
  await add('one', 3)
  expect(await fixture.waiting()).toEqual(['one'])
  expect(await totals()).toEqual({ added: 7, inserted: 5, deadLettered: 2, removed: 0 })
  expect(queuedRows(await totals())).toBe(0)
})

it('the totals count the rows of failed chunks that an operator deletes, and not those that are stored', async () => {
  for (const [id, rows] of [
    ['one', 3],
    ['two', 4],
    ['unknown', 5],
  ] as const)
    await add(id, rows)
  await claim('a-batch', ['one'])
  await fetchIds(consumer, 2)
  for (const id of ['one', 'two', 'unknown']) await consumer.fail(id, new Error('x'))
  await fixture.redis.hset(fixture.names.jobKey('unknown'), 'data', '{"v":9,"rows":5}')
  const rows = { inserted: 3, deadLettered: 0 }
  await consumer.finish({ id: 'a-batch', members: ['one'], rows }, 0)
  const { redis, names } = fixture
  const failed = new FailedChunks({ redis, shards: [names], makeId: () => 'batch-of-retry' })
  onTestFinished(() => failed.close())
  // When Redis is full, an operator may want to delete chunks.
  await fixture.whileFull(() => failed.purge('all'))
  expect(await fixture.counts()).toEqual({})
  expect(await totals()).toEqual({ added: 12, inserted: 3, deadLettered: 0, removed: 9 })
})
