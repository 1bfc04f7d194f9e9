import { describe, expect, test } from 'vitest'
import type { Reading } from '../../src/status/reading.ts'
import { screenLines } from '../../src/status/screen.ts'
import { statusOf } from '../../src/status/status.ts'
import { painter } from '../../src/terminal.ts'
import { processReport, readingOf, shardRows } from './readings.ts'

const COLUMNS = 80

function linesOf(now: Reading, before?: Reading, headroomS = Number.POSITIVE_INFINITY): string[] {
  const status = statusOf(now, before, { headroomS: () => headroomS }, 0)
  return screenLines(status, { columns: COLUMNS, paint: painter(false), intervalS: 2 })
}

const lineOf = (lines: readonly string[], label: string): string | undefined =>
  lines
    .find((line) => line.startsWith(label))
    ?.slice(label.length)
    .trim()

test('a busy installation', () => {
  const server = { server: '10.0.0.1:6379', usedBytes: 410_000_000, limitBytes: 1_073_741_824 }
  const at = (atMs: number, added: number, inserted: number): Reading =>
    readingOf(
      {
        atMs,
        servers: [server],
        processes: [
          processReport({ uptimeS: 7_380 }),
          processReport({ role: 'worker', chunksHeld: 16, lag: { chunks: 120, meanS: 0.61, maxS: 1.2 } }),
        ],
        shards: [
          shardRows({
            waiting: 600,
            inHand: 16,
            delayed: 1,
            failed: 2,
            oldestAgeS: 75,
            totals: { added, inserted, deadLettered: 3, removed: 0 },
          }),
        ],
      },
      { deadLetters: { total: 1_003, today: 3 } },
    )
  expect(linesOf(at(2_000, 1_300_000, 100_007), at(0, 1_280_000, 100_000), 11_520)).toEqual([
    'Rates         10,000 entries/s added, 3.5/s stored (over 2.0 s)',
    'Backlog       1,199,990 rows; chunks: 600 waiting, 16 in hand, 1 delayed, 2',
    '              failed',
    'Oldest chunk  1 min 15 s old',
    'Lag           mean 0.61 s, max 1.2 s (120 chunks in the last minute)',
    'Dead letters  1,003, 3 today',
    'Redis         10.0.0.1:6379: 410 MB of 1.1 GB (38 %), full in 3 h 12 min at this',
    '              rate',
    '',
    'PROCESS  HOST   PID  VERSION  UPTIME     IN HAND  STATE',
    'api      web-1  7    1.2.3    2 h 3 min  -        ready',
    'worker   web-1  7    1.2.3    1 min 0 s  16       ready',
    '',
    'SHARD  ROWS       WAITING  IN HAND  DELAYED  FAILED  OLDEST      ADDED/S  STORE…',
    '0      1,199,990  600      16       1        2       1 min 15 s  10,000   3.5',
  ])
})

test('the first screen says that the rates are measured', () => {
  expect(lineOf(linesOf(readingOf()), 'Rates')).toBe('measured for 2 s …')
})

test('an idle installation has no age and no lag', () => {
  const lines = linesOf(readingOf({ processes: [processReport()] }))
  expect(lineOf(lines, 'Oldest chunk')).toBe('none waits or is in hand')
  expect(lineOf(lines, 'Lag')).toBe('no chunk was stored in the last minute')
})

test.each([
  [Number.POSITIVE_INFINITY, 'not growing'],
  [86_401, 'not full within a day'],
  [90, 'full in 1 min 30 s at this rate'],
])('with a headroom of %s s, the memory of Redis is %s', (headroomS, text) => {
  const servers = [{ server: 'r:1', usedBytes: 10, limitBytes: 1_000 }]
  expect(lineOf(linesOf(readingOf({ servers }), undefined, headroomS), 'Redis')).toBe(
    `r:1: 10 B of 1.0 kB (1 %), ${text}`,
  )
})

describe('processes', () => {
  test('that are not ready are shown first, with the reason', () => {
    const processes = [
      processReport(),
      processReport({ role: 'worker', notReady: 'no insert has succeeded' }),
    ]
    const lines = linesOf(readingOf({ processes }))
    const at = lines.findIndex((line) => line.startsWith('PROCESS'))
    expect(lines.slice(at + 1, at + 4).map((line) => line.trim().split(/ {2,}/).at(-1))).toEqual([
      'not ready',
      'no insert has succeeded',
      'ready',
    ])
  })

  test('above twenty are counted', () => {
    const processes = Array.from({ length: 25 }, (_, pid) => processReport({ pid }))
    const lines = linesOf(readingOf({ processes }))
    expect(lines.filter((line) => line.startsWith('api '))).toHaveLength(20)
    expect(lines).toContain('and 5 more; --json has all')
  })

  test('that are missing are reported', () => {
    expect(linesOf(readingOf())).toContain('No process has reported itself in the last 15 s.')
  })
})

test('what could not be read is unknown, and each error is shown', () => {
  const lines = linesOf(
    readingOf({}, { redis: undefined, deadLetters: undefined, errors: ['no Redis', 'x'] }),
  )
  for (const label of ['Rates', 'Backlog', 'Oldest chunk', 'Lag', 'Dead letters', 'Redis', 'Processes'])
    expect(lineOf(lines, label)).toBe('unknown')
  expect(lines.slice(-2)).toEqual(['Error: no Redis', 'Error: x'])
})

test('no line is longer than the screen, and texts from elsewhere cannot control the terminal', () => {
  const long = 'long\u001B[2J '.repeat(40)
  const now = readingOf(
    {
      servers: [{ server: long, usedBytes: 1, limitBytes: 2 }],
      processes: [processReport({ host: long, version: long, notReady: long, uptimeS: 1e9, pid: 4_194_304 })],
      shards: Array.from({ length: 32 }, (_, shard) =>
        shardRows({
          shard,
          waiting: 1e9,
          oldestAgeS: 1e9,
          totals: { added: 1e15, inserted: 0, deadLettered: 0, removed: 0 },
        }),
      ),
    },
    { errors: [long, 'x'.repeat(200)] },
  )
  const lines = linesOf(now)
  expect(lines.filter((line) => line.length > COLUMNS)).toEqual([])
  expect(lines.join('\n')).not.toContain('\u001B')
})
