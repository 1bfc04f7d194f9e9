import type { ProcessReport, ShardReading } from '@sluice/ops'
import { expect, test } from 'vitest'
import { statusText } from '../../src/commands/status.ts'
import { type Reading, type RedisReading, statusJson, statusOf } from '../../src/status/status.ts'
import { painter } from '../../src/terminal.ts'

const totals = (added: number, inserted = 0, deadLettered = 0) => ({
  added,
  inserted,
  deadLettered,
  removed: 0,
})

/** A shard without chunks. */
function shardRows(given: Partial<ShardReading> = {}): ShardReading {
  const counts = { waiting: 0, delayed: 0, inHand: 0, failed: 0, oldestAgeS: 0 }
  return { shard: 0, ...counts, totals: totals(0), ...given }
}

function processReport(given: Partial<ProcessReport> = {}): ProcessReport {
  return {
    id: 'p',
    role: 'api',
    host: 'web-1',
    pid: 7,
    version: '1.2.3',
    uptimeS: 60,
    ageS: 1,
    isSilent: false,
    ...given,
  }
}

/** A reading of an idle installation. */
function readingOf(redis: Partial<RedisReading> = {}, given: Partial<Reading> = {}): Reading {
  const idle = { shards: [shardRows()], servers: [], processes: [], registry: 'known' as const, atMs: 0 }
  return { redis: { ...idle, ...redis }, deadLetters: { total: 0, today: 0 }, errors: [], ...given }
}

const notGrowing = () => Number.POSITIVE_INFINITY
const growing = ({ server }: { server: string }) => (server === 'r:1' ? 1.23456 : Infinity)

const shardsOf = (first: ShardReading['totals'], second: ShardReading['totals']): ShardReading[] => [
  shardRows({ totals: first }),
  shardRows({ shard: 1, totals: second }),
]

test('rates are the differences of the totals over the time between the readings, for each shard and for all', () => {
  const before = readingOf({ atMs: 1_000, shards: shardsOf(totals(100, 50), totals(10)) })
  const now = readingOf({ atMs: 3_000, shards: shardsOf(totals(300, 100, 4), totals(14)) })
  const { queue, shards } = statusOf(now, before, notGrowing, 0)
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
])('rates are unknown if %s', (_why, before) => {
  const now = readingOf({ atMs: 2_000, shards: [shardRows({ totals: totals(100) })] })
  expect(statusOf(now, before, notGrowing, 0).queue?.rates).toBeUndefined()
})

test('the queue is the sum of its shards, with the age of the oldest chunk', () => {
  const counts = { waiting: 1, delayed: 2, inHand: 3, failed: 4 }
  const first = shardRows({ ...counts, oldestAgeS: 5, totals: totals(10, 2, 1) })
  const second = shardRows({ shard: 1, waiting: 10, oldestAgeS: 7, totals: totals(5) })
  const { queue } = statusOf(readingOf({ shards: [first, second] }), undefined, notGrowing, 0)
  expect(queue).toMatchObject({ ...counts, waiting: 11, oldestAgeS: 7, rows: 12 })
})

test('the lag concerns all workers: the mean over their chunks, and the maximum', () => {
  const lags = [
    { chunks: 1, meanS: 4, maxS: 4 },
    { chunks: 3, meanS: 1, maxS: 2 },
  ]
  const processes = [processReport(), ...lags.map((lag) => processReport({ role: 'worker', lag }))]
  const { lag } = statusOf(readingOf({ processes }), undefined, notGrowing, 0)
  expect(lag).toEqual({ chunks: 4, meanS: 1.75, maxS: 4 })
})

test('the JSON has null for what is unknown, and for the headroom of a server whose memory does not grow', () => {
  const unknown = readingOf({}, { redis: undefined, deadLetters: undefined, errors: ['no Redis'] })
  expect(JSON.parse(statusJson(statusOf(unknown, undefined, notGrowing, Date.UTC(2026, 0, 1))))).toEqual({
    at: '2026-01-01T00:00:00.000Z',
    queue: null,
    shards: [],
    lag: null,
    deadLetters: null,
    servers: [],
    processes: null,
    registry: null,
    errors: ['no Redis'],
  })
  const servers = ['r:1', 'r:2'].map((server) => ({ server, usedBytes: 1, limitBytes: 2 }))
  const json = statusJson(statusOf(readingOf({ servers }), undefined, growing, 0))
  expect(JSON.parse(json)).toMatchObject({ servers: [{ headroomS: 1.235 }, { headroomS: null }] })
})

function linesOf(now: Reading, before?: Reading, headroomS = Number.POSITIVE_INFINITY): string[] {
  const status = statusOf(now, before, () => headroomS, 0)
  return statusText(status, painter(false)).trimEnd().split('\n').slice(1)
}

const lineOf = (lines: readonly string[], label: string): string | undefined =>
  lines
    .find((line) => line.startsWith(label))
    ?.slice(label.length)
    .trim()

test('a busy installation', () => {
  const chunks = { waiting: 600, inHand: 16, delayed: 1, failed: 2, oldestAgeS: 75 }
  const at = (atMs: number, added: number, inserted: number): Reading =>
    readingOf(
      {
        atMs,
        servers: [{ server: '10.0.0.1:6379', usedBytes: 410_000_000, limitBytes: 1_073_741_824 }],
        processes: [
          processReport({ uptimeS: 7_380, notReady: 'no insert has succeeded' }),
          processReport({ role: 'worker', chunksHeld: 16, lag: { chunks: 120, meanS: 0.61, maxS: 1.2 } }),
        ],
        shards: [shardRows({ ...chunks, totals: totals(added, inserted, 3) })],
      },
      { deadLetters: { total: 1_003, today: 3 } },
    )
  expect(linesOf(at(2_000, 1_300_000, 100_007), at(0, 1_280_000, 100_000), 11_520)).toEqual([
    'Rates         10,000 entries/s added, 3.5/s stored (over 2.0 s)',
    'Backlog       1,199,990 rows; chunks: 600 waiting, 16 in hand, 1 delayed, 2 failed',
    'Oldest chunk  1 min 15 s old',
    'Lag           mean 0.61 s, max 1.2 s (120 chunks in the last minute)',
    'Dead letters  1,003, 3 today',
    'Redis         10.0.0.1:6379: 410 MB of 1.07 GB (38 %), full in 3 h 12 min at this rate',
    '',
    'PROCESS  HOST   PID  VERSION  UPTIME     IN HAND  STATE',
    'api      web-1  7    1.2.3    2 h 3 min  -        not ready: no insert has succeeded',
    'worker   web-1  7    1.2.3    1 min 0 s  16       ready',
    '',
    'SHARD  ROWS       WAITING  IN HAND  DELAYED  FAILED  OLDEST      ADDED/S  STORED/S',
    '0      1,199,990  600      16       1        2       1 min 15 s  10,000   3.5',
  ])
})

test('an idle installation without processes, at the first reading', () => {
  const lines = linesOf(readingOf())
  expect(lineOf(lines, 'Rates')).toBe('known after the next refresh')
  expect(lineOf(lines, 'Oldest chunk')).toBe('none waits or is in hand')
  expect(lineOf(lines, 'Lag')).toBe('no chunk was stored in the last minute')
  expect(lines).toContain('No worker is running: none has reported itself in the last 15 s.')
})

test('a process that no longer reports is named, and counts neither as running nor in the lag', () => {
  const silent = { isSilent: true, ageS: 45.9, lag: { chunks: 1, meanS: 1, maxS: 1 } }
  const processes = [processReport(), processReport({ role: 'worker', host: 'w-1', ...silent })]
  const lines = linesOf(readingOf({ processes }))
  expect(lineOf(lines, 'Lag')).toBe('no chunk was stored in the last minute')
  expect(lineOf(lines, 'worker')).toMatch(/^w-1 .* has not reported for 45 s: frozen or dead$/)
  expect(lines.filter((line) => line.startsWith('No '))).toEqual([
    'No worker is running: none has reported itself in the last 15 s.',
  ])
})

test.each([
  ['known', undefined],
  ['empty', undefined],
  ['lost', expect.stringMatching(/^Redis has lost its data.* .\/sluice projects import FILE/)],
  ['foreign', expect.stringMatching(/^Redis has lost its data.* .\/sluice projects import FILE/)],
] as const)('what to do is said if the projects are lost or foreign: %s', (registry, text) => {
  expect(lineOf(linesOf(readingOf({ registry })), 'Projects')).toEqual(text)
})

test.each([
  [Number.POSITIVE_INFINITY, 'not growing'],
  [90, 'full in 1 min 30 s at this rate'],
])('with a headroom of %s s, the memory of Redis is %s', (headroomS, text) => {
  const servers = [{ server: 'r:1', usedBytes: 10, limitBytes: 1_000 }]
  expect(lineOf(linesOf(readingOf({ servers }), undefined, headroomS), 'Redis')).toBe(
    `r:1: 10 B of 1 kB (1 %), ${text}`,
  )
})

test('what could not be read is unknown, and each error is shown', () => {
  const unknown = { redis: undefined, deadLetters: undefined, errors: ['no Redis', 'x'] }
  const lines = linesOf(readingOf({}, unknown))
  for (const label of ['Rates', 'Backlog', 'Oldest chunk', 'Lag', 'Dead letters', 'Redis', 'Processes'])
    expect(lineOf(lines, label)).toBe('unknown')
  expect(lines.slice(-3)).toEqual(['Error: no Redis', '', 'Error: x'])
})

test('strings from elsewhere cannot control the terminal', () => {
  const evil = 'long\u001B[2J'
  const servers = [{ server: evil, usedBytes: 1, limitBytes: 2 }]
  const processes = [processReport({ host: evil, version: evil, notReady: evil })]
  expect(linesOf(readingOf({ servers, processes }, { errors: [evil] })).join('\n')).not.toContain('\u001B')
})
