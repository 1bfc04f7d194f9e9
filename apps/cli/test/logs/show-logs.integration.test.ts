import { type ClickHouseClient, logsInsertQuery } from '@sluice/clickhouse'
import { makeRowPrefix, parseJsonExactly, shapeRow } from '@sluice/rows'
import type { Entry } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { followLimits } from '../../src/logs/follow.ts'
import { futureEntriesMax } from '../../src/logs/show-logs.ts'
import { run } from '../../src/run.ts'
import { jsonLines, testInstallation } from '../installation.ts'

const { context, sluice, connect, database } = testInstallation()
let client: ClickHouseClient

beforeAll(async () => {
  await sluice('migrate')
  client = connect({ database })
})

afterAll(async () => {
  await client.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` })
  await client.close()
})

/** Stores entries, given as JSON text, as the API and the worker would. */
async function store(projectId: string, entries: readonly string[], receivedAtMs = Date.now()) {
  const rowPrefix = makeRowPrefix({ projectId, retentionDays: 30, receivedAtMs })
  const rows = entries.map((entry) => {
    const shaped = shapeRow(parseJsonExactly(entry) as Entry, randomUUID(), rowPrefix, true)
    if ('error' in shaped) throw new Error(shaped.error.message)
    return shaped.row
  })
  await client.command({ query: `${logsInsertQuery}\n${rows.join('')}` })
}

const messages = async (...flags: string[]): Promise<unknown[]> =>
  jsonLines(await sluice('logs', '--project', 'demo', '--json', ...flags)).map(({ message }) => message)

describe('logs', () => {
  const HARD =
    '{"deep":{"a":[1,"x",null,{"b":[]}]},"none":null,"empty":{},"dots.in.names":{"a.b":1},"i64":9223372036854775807,' +
    '"u64":18446744073709551615,"big":123456789012345678901234567890,"huge":1e400,"float":0.1,"text":"Ä 東京 👩‍💻"}'

  beforeAll(async () => {
    await store('demo', [
      '{"level":"info","message":"first","timestamp":"2026-01-01T00:00:00.000001Z","service":"web"}',
      '{"level":"error","message":"It\'s 100% BROKEN \\\\ Ärger","timestamp":"2026-01-02T00:00:00Z","service":"shop"}',
      `{"level":"warn","message":"hard","timestamp":"2026-01-03T00:00:00Z","metadata":${HARD}}`,
    ])
    await store('other', ['{"level":"info","message":"of another project"}'])
  })

  test('prints the newest matching entries, oldest first', async () => {
    expect(await messages()).toEqual(['first', "It's 100% BROKEN \\ Ärger", 'hard'])
    expect(await messages('--limit', '2')).toEqual(["It's 100% BROKEN \\ Ärger", 'hard'])
    expect(await messages('--limit', '0')).toEqual([])
  })

  test.each([
    [['--level', 'error,warn'], 2],
    [['--level', 'error', '--level', 'info'], 2],
    [['--service', 'web'], 1],
    [['--since', '2026-01-02'], 2],
    [['--since', '2026-01-02T00:00:00.001Z'], 1],
    [['--from', '2026-01-02'], 2],
    [['--from', '2026-01-01T00:00:00.000002Z'], 2],
    [['--from', '2026-01-01', '--until', '2026-01-03'], 2],
    [['--until', '2026-01-01T00:00:00.000001Z'], 0],
    [['--until', '2026-01-01T00:00:00.000002Z'], 1],
    [['--search', 'broken'], 1],
    [['--search', 'ÄRGER'], 1],
    [['--search', "it's 100% broken \\ "], 1],
    [['--search', '%'], 1],
    [['--search', "' OR 1=1 --"], 0],
    [['--level', 'info', '--search', 'broken'], 0],
  ])('with %j matches %i', async (flags, count) => {
    expect(await messages(...flags)).toHaveLength(count)
  })

  test('prints metadata exactly as it was sent', async () => {
    expect(await sluice('logs', '--project', 'demo', '--search', 'hard', '--json')).toContain(
      `,"metadata":${HARD}}\n`,
    )
    expect(await sluice('logs', '--project', 'demo', '--search', 'hard')).toBe(
      `2026-01-03T00:00:00.000Z WARN    hard ${HARD}\n`,
    )
  })

  test.each([
    [{ CLICKHOUSE_PASSWORD: 'wrong' }, 'rejects the user'],
    [{ CLICKHOUSE_DATABASE: 'not_there' }, '`sluice migrate` creates them'],
  ])('reports the reason and advice with %j', async (environment, reason) => {
    const used = context(environment)
    expect(await run(['logs', '--project', 'demo'], used)).toBe(1)
    expect(used.written.stderr).toContain(reason)
  })
})

describe('entries of the future', () => {
  const AHEAD = '{"level":"error","message":"ahead","timestamp":"2261-01-01T00:00:00Z"}'
  const logs = async (...flags: string[]) => {
    const used = context()
    const code = await run(['logs', '--project', 'hidden', '--json', ...flags], used)
    const found = jsonLines(used.written.stdout).map(({ message }) => message)
    return { code, found, stderr: used.written.stderr }
  }

  beforeAll(async () => {
    await store('hidden', [
      '{"level":"info","message":"now"}',
      `{"level":"info","message":"soon","timestamp":"${new Date(Date.now() + 600_000).toISOString()}"}`,
      ...Array.from({ length: 100 }, () => AHEAD),
    ])
  })

  test.each([[[]], [['--since', '5m']], [['--from', '5m']]])(
    'do not hide current ones with %j, and are reported on stderr',
    async (flags) => {
      const { code, found, stderr } = await logs(...flags)
      expect({ code, found }).toEqual({ code: 0, found: ['now', 'soon'] })
      expect(stderr).toMatch(
        /^sluice: 100 entries of the future are not shown \(--until \d{4}-\d\d-\d\dT[\d:.]+Z\)\n$/,
      )
    },
  )

  test('are counted with the other conditions', async () => {
    expect((await logs('--level', 'info')).stderr).toBe('')
    expect((await logs('--level', 'error')).stderr).toContain('100 entries of the future are not shown')
    expect((await logs('--level', 'error')).found).toEqual([])
  })

  test('are printed with a later --until, without the report', async () => {
    const { found, stderr } = await logs('--from', '2261-01-01', '--until', '2261-01-02', '--limit', '3')
    expect(found).toEqual(['ahead', 'ahead', 'ahead'])
    expect(stderr).toBe('')
  })

  test('are counted up to a maximum', async () => {
    await store(
      'flooded',
      Array.from({ length: futureEntriesMax + 1 }, () => AHEAD),
    )
    const used = context()
    expect(await run(['logs', '--project', 'flooded'], used)).toBe(0)
    expect(used.written.stderr).toContain('more than 10,000 entries of the future are not shown')
  })
})

test('logs --follow prints each entry that arrives, late or not, once, until it is interrupted', async () => {
  const nowMs = Date.now()
  await store('followed', ['{"level":"info","message":"before"}'], nowMs)
  const used = context()
  const running = run(['logs', '--project', 'followed', '--level', 'info', '-f', '--json'], used)
  const printed = (): unknown[] => jsonLines(used.written.stdout).map(({ message }) => message)
  const until = async (count: number): Promise<void> => {
    while (printed().length < count) await sleep(50)
  }
  await until(1)
  await store(
    'followed',
    ['{"level":"info","message":"new"}', '{"level":"warn","message":"not requested"}'],
    nowMs + 1,
  )
  await until(2)
  await store(
    'followed',
    ['{"level":"info","message":"old","timestamp":"2001-01-01T00:00:00Z"}'],
    nowMs - 1_000,
  )
  await until(3)
  await sleep(3 * followLimits.pollIntervalMs)
  used.interrupt()
  expect(await running).toBe(130)
  expect(printed()).toEqual(['before', 'new', 'old'])
})
