import { describe, expect, test } from 'vitest'
import { statusJson, statusOf } from '../../src/status/status.ts'
import { processReport, readingOf, shardRows } from './readings.ts'

const trend = { headroomS: () => Number.POSITIVE_INFINITY }
const totals = (added: number, inserted = 0, deadLettered = 0) => ({
  added,
  inserted,
  deadLettered,
  removed: 0,
})

describe('rates', () => {
  test('are the differences of the totals over the time between the readings, for each shard and for all', () => {
    const before = readingOf({
      atMs: 1_000,
      shards: [shardRows({ totals: totals(100, 50) }), shardRows({ shard: 1, totals: totals(10) })],
    })
    const now = readingOf({
      atMs: 3_000,
      shards: [shardRows({ totals: totals(300, 100, 4) }), shardRows({ shard: 1, totals: totals(14) })],
    })
    const { queue, shards } = statusOf(now, before, trend, 0)
    expect(shards.map(({ rates }) => rates)).toEqual([
      { intervalS: 2, added: 100, inserted: 25, deadLettered: 2 },
      { intervalS: 2, added: 2, inserted: 0, deadLettered: 0 },
    ])
    expect(queue?.rates).toEqual({ intervalS: 2, added: 102, inserted: 25, deadLettered: 2 })
  })

  test.each([
    ['there is no earlier reading', undefined],
    ['the earlier reading failed', readingOf({}, { redis: undefined })],
    ['the totals have gone back', readingOf({ shards: [shardRows({ totals: totals(101) })] })],
    ['the shard is new', readingOf({ shards: [] })],
  ])('are unknown if %s', (_why, before) => {
    const now = readingOf({ atMs: 2_000, shards: [shardRows({ totals: totals(100) })] })
    expect(statusOf(now, before, trend, 0).queue?.rates).toBeUndefined()
  })
})

test('the queue is the sum of its shards, with the age of the oldest chunk', () => {
  const now = readingOf({
    shards: [
      shardRows({ waiting: 1, delayed: 2, inHand: 3, failed: 4, oldestAgeS: 5, totals: totals(10, 2, 1) }),
      shardRows({ shard: 1, waiting: 10, oldestAgeS: 7, totals: totals(5) }),
    ],
  })
  expect(statusOf(now, undefined, trend, 0).queue).toMatchObject({
    waiting: 11,
    delayed: 2,
    inHand: 3,
    failed: 4,
    oldestAgeS: 7,
    rows: 12,
  })
})

describe('the lag', () => {
  test('is that of all workers: the mean over their chunks, and the maximum', () => {
    const processes = [
      processReport(),
      processReport({ role: 'worker', lag: { chunks: 1, meanS: 4, maxS: 4 } }),
      processReport({ role: 'worker', lag: { chunks: 3, meanS: 1, maxS: 2 } }),
    ]
    expect(statusOf(readingOf({ processes }), undefined, trend, 0).lag).toEqual({
      chunks: 4,
      meanS: 1.75,
      maxS: 4,
    })
  })

  test('is undefined if no worker has stored a chunk', () => {
    expect(statusOf(readingOf({ processes: [processReport()] }), undefined, trend, 0).lag).toBeUndefined()
  })
})

test('the JSON has null for what is unknown', () => {
  const reading = readingOf({}, { redis: undefined, deadLetters: undefined, errors: ['no Redis'] })
  expect(JSON.parse(statusJson(statusOf(reading, undefined, trend, Date.UTC(2026, 0, 1))))).toEqual({
    at: '2026-01-01T00:00:00.000Z',
    queue: null,
    shards: [],
    lag: null,
    deadLetters: null,
    servers: [],
    processes: null,
    errors: ['no Redis'],
  })
})

test('the JSON has the headroom of each server, null if its memory does not grow', () => {
  const servers = [
    { server: 'redis:1', usedBytes: 1, limitBytes: 2 },
    { server: 'redis:2', usedBytes: 1, limitBytes: 2 },
  ]
  const headroom = {
    headroomS: ({ server }: { server: string }) => (server === 'redis:1' ? 1.23456 : Infinity),
  }
  const json = statusJson(statusOf(readingOf({ servers }), undefined, headroom, 0))
  expect((JSON.parse(json) as { servers: unknown }).servers).toEqual([
    { ...servers[0], headroomS: 1.235 },
    { ...servers[1], headroomS: null },
  ])
})
