import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { ChunkConsumer } from '../src/chunk-consumer.ts'
import { FailedChunks } from '../src/failed-chunks.ts'
import { queuedRows, readRowTotals } from '../src/queue-names.ts'
import { chunkOf, ConsumerFixture, fetchIds, useTestRedis, WAIT_MS } from './support/consumer-fixture.ts'

const server = useTestRedis()
let fixture: ConsumerFixture
let consumer: ChunkConsumer
let failed: FailedChunks

beforeEach(() => {
  fixture = new ConsumerFixture(server.url)
  consumer = fixture.openConsumer()
  failed = openFailed()
})

function openFailed(): FailedChunks {
  const opened = new FailedChunks(fixture.redis, [fixture.names])
  onTestFinished(() => opened.close())
  return opened
}

/** Adds chunks and fetches all of them. */
async function inHand(...ids: readonly string[]): Promise<void> {
  for (const id of ids) await fixture.add(id)
  expect(await fetchIds(consumer, ids.length)).toEqual(ids)
}

/** Adds chunks that are claimed as one batch. All but the last `waiting` of them fail. */
async function failedBatch(batchId: string, ids: readonly string[], waiting = 0): Promise<void> {
  await inHand(...ids)
  await fixture.ledger.claim(batchId, ids)
  for (const [index, id] of ids.entries()) {
    if (index < ids.length - waiting) await consumer.fail(id, new Error(`${id} is bad`))
    else await consumer.requeue([id], 'front')
  }
}

async function addDamaged(id: string): Promise<void> {
  await fixture.add(id)
  await fixture.redis.hset(fixture.names.jobKey(id), 'data', '{"v":')
  expect(await fetchIds(consumer, 1)).toEqual([])
}

/** Whether a record is kept without a limit. */
const isKept = async (key: string): Promise<boolean> => (await fixture.redis.ttl(key)) === -1

describe('list', () => {
  it('has the failed chunks, those that failed last first', async () => {
    const before = Date.now()
    await failedBatch('a-batch', ['one'])
    await inHand('two')
    await consumer.fail('two', new Error('second'))
    await addDamaged('three')
    const chunks = await failed.list(10)
    const times = chunks.map(({ failedAtMs }) => failedAtMs)
    expect(times.toSorted((a, b) => b - a)).toEqual(times)
    for (const time of times) expect(Math.abs(time - before)).toBeLessThan(60_000)
    const byId = new Map(chunks.map(({ failedAtMs: _time, id, ...chunk }) => [id, chunk]))
    expect(Object.fromEntries(byId)).toEqual({
      one: { shard: 0, reason: 'one is bad', rows: 1, batchId: 'a-batch' },
      two: { shard: 0, reason: 'second', rows: 1, batchId: undefined },
      three: { shard: 0, reason: 'the data of the job is damaged', rows: undefined, batchId: undefined },
    })
    expect(await failed.list(2)).toEqual(chunks.slice(0, 2))
    expect(await fixture.counts()).toEqual({ failed: 3 })
  })
})

describe('retry', () => {
  it('requeues all chunks that can be read, behind those that wait, and leaves them in their batch', async () => {
    await failedBatch('a-batch', ['one', 'two'])
    await addDamaged('three')
    await fixture.add('waiting')
    expect(await failed.retry(['one'])).toEqual(new Map([['one', 'requeued']]))
    expect(Object.fromEntries(await failed.retry('all'))).toEqual({ two: 'requeued', three: 'damaged' })
    expect(await fixture.waiting()).toEqual(['waiting', 'one', 'two'])
    expect(await fixture.counts()).toEqual({ waiting: 3, failed: 1 })
    expect(await fixture.ledger.claim('another-batch', ['one'])).toEqual(['a-batch'])
  })

  it('gives a chunk without a batch a claimed one, so that its rows are looked up before they are inserted', async () => {
    // As after 30 days, when the records of a confirmed batch have expired.
    await inHand('one')
    await consumer.fail('one', new Error('x'))
    expect(await failed.retry(['one'])).toEqual(new Map([['one', 'requeued']]))
    const [batchId = ''] = await fixture.ledger.claim('another-batch', ['one'])
    expect(batchId).not.toBe('another-batch')
    expect(await fixture.ledger.read(batchId)).toMatchObject({
      state: 'claimed',
      members: ['one'],
    })
  })

  it('removes a chunk whose batch is confirmed', async () => {
    await failedBatch('a-batch', ['one', 'two'], 1)
    expect(await fetchIds(consumer, 1)).toEqual(['two'])
    await consumer.finish({ id: 'a-batch', members: ['one', 'two'] }, 0)
    expect(await fixture.counts()).toEqual({ failed: 1 })
    expect(await failed.retry('all')).toEqual(new Map([['one', 'stored']]))
    expect(await fixture.counts()).toEqual({})
  })

  it('of two operators at the same time requeues each chunk once', async () => {
    const ids = await fixture.addMany(20)
    while (consumer.heldChunks < ids.length) await fetchIds(consumer, 20)
    for (const id of ids) await consumer.fail(id, new Error('x'))
    await Promise.all([failed.retry('all'), openFailed().retry('all')])
    expect((await fixture.waiting()).toSorted()).toEqual(ids.toSorted())
  })
})

describe('purge', () => {
  it('deletes a chunk, and lets the records of its batch expire', async () => {
    await failedBatch('a-batch', ['one'])
    await addDamaged('two')
    expect(await isKept(fixture.names.batchKey('a-batch'))).toBe(true)
    expect(Object.fromEntries(await failed.purge('all'))).toEqual({ one: 'removed', two: 'removed' })
    expect(await fixture.counts()).toEqual({})
    expect(await fixture.redis.exists(fixture.names.jobKey('one'), fixture.names.jobKey('two'))).toBe(0)
    expect(await isKept(fixture.names.batchKey('a-batch'))).toBe(false)
    expect(await isKept(fixture.names.chunkKey('one'))).toBe(false)
  })

  it('deletes the chunks of a batch together only, because none can be stored without the others', async () => {
    await failedBatch('a-batch', ['one', 'two', 'three'], 1)
    const before = await fixture.content()
    expect(await failed.purge(['one'])).toEqual(new Map([['one', 'needed']]))
    // One of them still waits.
    expect(Object.fromEntries(await failed.purge('all'))).toEqual({ one: 'needed', two: 'needed' })
    expect(await fixture.content()).toEqual(before)
    await fetchIds(consumer, 1)
    await consumer.fail('three', new Error('x'))
    expect(new Set((await failed.purge('all')).values())).toEqual(new Set(['removed']))
  })

  it('counts the rows of deleted chunks, and not those that are stored', async () => {
    const queue = fixture.openChunkQueue()
    for (const [id, rows] of Object.entries({ stored: 3, lost: 4, unknown: 5 }))
      await queue.add(id, { ...chunkOf(''), rows }, performance.now() + WAIT_MS)
    expect(await fetchIds(consumer, 3)).toHaveLength(3)
    await fixture.ledger.claim('a-batch', ['stored'])
    for (const id of ['stored', 'lost', 'unknown']) await consumer.fail(id, new Error('x'))
    await fixture.redis.hset(fixture.names.jobKey('unknown'), 'data', '{"v":9,"rows":5}')
    const rows = { inserted: 3, deadLettered: 0 }
    await consumer.finish({ id: 'a-batch', members: ['stored'], rows }, 0)
    // When Redis is full, an operator may want to delete chunks.
    await fixture.whileFull(() => failed.purge('all'))
    expect(await fixture.counts()).toEqual({})
    const totals = readRowTotals(await fixture.redis.hgetall(fixture.names.totalsKey))
    expect(totals).toEqual({ added: 12, inserted: 3, deadLettered: 0, removed: 9 })
    expect(queuedRows(totals)).toBe(0)
  })
})

it.each(['retry', 'purge'] as const)('%s does not change jobs that did not fail', async (act) => {
  await fixture.add('waiting')
  const before = await fixture.content()
  const outcomes = Object.fromEntries(await failed[act](['waiting', 'unknown']))
  expect(outcomes).toEqual({ waiting: 'missing', unknown: 'missing' })
  expect(await fixture.content()).toEqual(before)
})
