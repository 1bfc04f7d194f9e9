import { closeRedis } from '@sluice/harness/close-redis'
import { FaultProxy } from '@sluice/harness'
import { rowsOfFrame, packBlocks } from '@sluice/rows'
import { encodeBlock } from '@sluice/rows/testing'
import { connectRedis, plainRedis, processClock } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { encodeChunk, type NewChunk } from '../src/chunk.ts'
import { ChunkQueue } from '../src/chunk-queue.ts'
import {
  Completeness,
  type CompletenessOptions,
  completenessLimits,
  lateInserts,
} from '../src/completeness.ts'
import { FailedChunks } from '../src/failed-chunks.ts'
import { queueNames } from '../src/queue-names.ts'
import { ConsumerFixture, fetchMine, useTestRedis, WAIT_MS } from './support/consumer-fixture.ts'

const server = useTestRedis()
const NOW_MS = Date.parse('2026-11-24T10:00:00Z')
/** What a reader that asks at `NOW_MS` closes, unless Redis is slow. */
const CLOSED_MS = NOW_MS - completenessLimits.settleMs

let prefix: string
let fixture: ConsumerFixture

beforeEach(() => {
  prefix = `test-${randomUUID()}`
  fixture = new ConsumerFixture(server.url, queueNames(prefix))
})

const wallMs = (): number => NOW_MS + completenessLimits.answerMs
const hourLaterMs = (): number => NOW_MS + 3_600_000

/** A reader that asks when nothing takes any time. */
function openReader(options: Partial<CompletenessOptions> = {}): Completeness {
  const clock = { nowMs: () => (passedMs += completenessLimits.answerMs / 2), sleep: () => Promise.resolve() }
  let passedMs = 0
  const durable = plainRedis(fixture.redis)
  return new Completeness({ durable, prefix, shards: 1, redisMs: wallMs, wallMs, clock, ...options })
}

/** Its own connection. */
function openQueue(shard = 0): ChunkQueue {
  const connection = connectRedis(server.url, { failFast: false })
  const queue = new ChunkQueue(connection, queueNames(prefix, shard))
  onTestFinished(async () => {
    await queue.close()
    await closeRedis(connection)
  })
  return queue
}

/** A chunk with a row for each time of receipt. */
function receivedAt(...times: readonly number[]): NewChunk {
  const rows = times.map((ms) => `p\t${new Date(ms).toISOString().slice(0, -1).replace('T', ' ')}\n`)
  return encodeChunk(packBlocks(encodeBlock(rows)))
}

const add = (queue: ChunkQueue, id: string, chunk: NewChunk): Promise<unknown> =>
  queue.add(id, chunk, performance.now() + WAIT_MS)

/** Takes the only chunk and completes it. @returns the times of receipt of its rows */
async function store(): Promise<number[]> {
  const consumer = fixture.openConsumer()
  const { chunks } = await fetchMine(consumer, 1)
  const [batchId = ''] = await fixture.ledger.claim(
    randomUUID(),
    chunks.map(({ id }) => id),
  )
  await consumer.finish(
    { id: batchId, members: chunks.map(({ id }) => id), rows: { inserted: 1, deadLettered: 0 } },
    0,
  )
  await consumer.close()
  const rows = chunks.flatMap(({ frame }) => rowsOfFrame(frame) ?? [])
  return rows.map((row) => Date.parse(`${row.split('\t')[1]}Z`))
}

it('everything is complete up to shortly before the question, without chunks', async () => {
  const untilMs = await openReader().until()
  expect(untilMs).toBeGreaterThan(CLOSED_MS - 1_000)
  expect(untilMs).toBeLessThan(NOW_MS)
})

it('the time of the earliest row in the queue is not complete, until its batch is stored', async () => {
  await add(openQueue(), 'a', receivedAt(NOW_MS - 2_000, NOW_MS - 5_000, NOW_MS - 3_000))
  expect(await openReader().until()).toBe(NOW_MS - 5_001)
  await store()
  expect(await openReader().until()).toBeGreaterThan(NOW_MS - 2_000)
})

it('rows that arrive after their time was complete are received later, and the others as before', async () => {
  const untilMs = (await openReader().until()) ?? 0
  await add(openQueue(), 'a', receivedAt(NOW_MS - 3_600_000, NOW_MS + 1_000, untilMs, untilMs + 1))
  expect(await store()).toEqual([untilMs + 1, NOW_MS + 1_000, untilMs + 1, untilMs + 1])
})

it('of the clocks of Redis and of the process, the earlier one counts', async () => {
  for (const ahead of [{ redisMs: hourLaterMs }, { wallMs: hourLaterMs }])
    expect(await openReader(ahead).until()).toBeLessThan(NOW_MS)
})

it('is not known while a chunk of an earlier version is in the queue, and is known when it is stored', async () => {
  await fixture.add('old')
  expect(await openReader().until()).toBeNull()
  await store()
  expect(await openReader().until()).toBeGreaterThan(NOW_MS - 1_000)
})

it('is not known either when a worker of an earlier version has left the receipt of another chunk', async () => {
  await fixture.add('old')
  await add(openQueue(), 'b', receivedAt(NOW_MS - 5_000))
  await add(openQueue(), 'c', receivedAt(NOW_MS - 2_000))
  await fixture.redis.del(fixture.names.jobKey('c'))
  await fixture.redis.lrem(fixture.names.waitKey, 0, 'c')
  expect(await openReader().until()).toBeNull()
})

it('forgets a chunk that a worker of an earlier version has completed', async () => {
  await fixture.redis.zadd(fixture.names.receiptsKey, NOW_MS - 60_000, 'completed')
  expect(await openReader().until()).toBeGreaterThan(NOW_MS - 1_000)
})

it('a failed chunk is in the way until an operator deletes it', async () => {
  await add(openQueue(), 'a', receivedAt(NOW_MS - 60_000))
  const consumer = fixture.openConsumer()
  await fetchMine(consumer, 1)
  await consumer.fail('a', new Error('a reason'))
  expect(await openReader().until()).toBe(NOW_MS - 60_001)
  const failed = new FailedChunks(fixture.redis, [fixture.names])
  onTestFinished(() => failed.close())
  await failed.purge('all')
  expect(await openReader().until()).toBeGreaterThan(NOW_MS - 1_000)
})

it('a shard that comes into use later adds nothing that was complete before', async () => {
  const untilMs = (await openReader().until()) ?? 0
  await add(openQueue(1), 'a', receivedAt(untilMs))
  // It learns of the shard.
  expect(await openReader().until()).toBe(untilMs)
})

it('a late insert gets a time that is not complete, and becomes so when it has ended', async () => {
  const late = lateInserts(plainRedis(fixture.redis), queueNames(prefix, 0))
  const before = (await openReader().until()) ?? 0
  await late(async (receivedMs) => {
    expect(receivedMs()).toBe(before + 1)
    expect(await openReader({ wallMs: hourLaterMs, redisMs: hourLaterMs }).until()).toBe(before)
  })
  expect(await openReader().until()).toBeGreaterThan(before)
})

it('a late insert that was suspended is not sent', async () => {
  let nowMs = 0
  const clock = { ...processClock, nowMs: () => nowMs }
  const late = lateInserts(plainRedis(fixture.redis), fixture.names, clock)
  await late(async (receivedMs) => {
    receivedMs()
    // Its time becomes complete after 600 s, and an insert may take 120 s.
    nowMs = 480_000
    expect(receivedMs).toThrow('suspended')
  })
})

it('nothing is complete after a late insert without a result, until it must have ended', async () => {
  const { admittedKey } = fixture.names
  const before = (await openReader().until()) ?? 0
  const late = lateInserts(plainRedis(fixture.redis), fixture.names)
  await expect(late(() => Promise.reject(new Error('no response')))).rejects.toThrow('no response')
  const later = { wallMs: hourLaterMs, redisMs: hourLaterMs }
  expect(await openReader(later).until()).toBe(before)
  const [id = '', untilMs] = await fixture.redis.zrange(admittedKey, '0', '-1', 'WITHSCORES')
  expect(Number(untilMs)).toBeGreaterThan(Date.now() + 500_000)
  await fixture.redis.zadd(admittedKey, Date.now() - 60_000, id)
  expect(await openReader(later).until()).toBeGreaterThan(NOW_MS)
})

it('a shard that does not reply keeps its last answer', async () => {
  const proxy = await FaultProxy.open(server.url)
  onTestFinished(() => proxy.down())
  const redis = connectRedis(proxy.url, { failFast: true, commandTimeoutMs: 500 })
  redis.on('error', () => undefined)
  onTestFinished(() => closeRedis(redis))
  let nowMs = NOW_MS
  const reader = openReader({ durable: plainRedis(redis), redisMs: () => nowMs, wallMs: () => nowMs })
  await expect.poll(() => reader.until()).toBeGreaterThan(NOW_MS - 1_000)
  const untilMs = await reader.until()
  nowMs += 60_000
  await proxy.down()
  await expect.poll(() => reader.until()).toBe(untilMs)
})
