import { type ClickHouseClient, logsInsertQuery } from '@sluice/clickhouse'
import { parseJsonExactly } from '@sluice/rows'
import { rowOf, textPrefix } from '@sluice/rows/testing'
import type { Entry } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { followLimits } from '../../src/logs/follow.ts'
import { run } from '../../src/run.ts'
import { jsonLines, testInstallation } from '../installation.ts'

const { context, sluice, objects, failing, connect, database } = testInstallation()
let client: ClickHouseClient

beforeAll(async () => {
  await sluice('migrate')
  client = connect({ database })
})
afterAll(() => client.close())

/** Stores entries, given as JSON, as the API and the worker would. */
async function store(projectId: string, entries: readonly string[], receivedAtMs = Date.now()) {
  const rowPrefix = textPrefix({ projectId, retentionDays: 30, receivedAtMs })
  const rows = entries.map((entry) => rowOf(parseJsonExactly(entry) as Entry, randomUUID(), rowPrefix))
  await client.command({ query: `${logsInsertQuery}\n${rows.join('')}` })
}

/** The messages that `sluice logs` prints of a project. */
const messages = async (project: string, ...flags: string[]): Promise<unknown[]> =>
  (await objects('logs', '--project', project, ...flags)).map(({ message }) => message)

/** Runs `sluice logs`. @returns its output */
async function logs(...flags: string[]) {
  const used = context()
  expect(await run(['logs', ...flags], used)).toBe(0)
  return used.written
}

test.each(['nope', "x' OR 1=1"])('a project without entries is reported on stderr: %s', async (project) => {
  const stderr = `sluice: the project ${project} has no entries; \`./sluice projects list\` lists the projects\n`
  expect(await logs('--project', project)).toEqual({ stdout: '', stderr })
})

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

  const BROKEN = "It's 100% BROKEN \\ Ärger"
  test.each([
    [[], ['first', BROKEN, 'hard']],
    [
      ['--limit', '2'],
      [BROKEN, 'hard'],
    ],
    [['--limit', '0'], []],
    [
      ['--level', 'error,warn'],
      [BROKEN, 'hard'],
    ],
    [
      ['--level', 'error', '--level', 'info'],
      ['first', BROKEN],
    ],
    [['--service', 'web'], ['first']],
    [
      ['--since', '2026-01-02'],
      [BROKEN, 'hard'],
    ],
    [['--from', '2026-01-01T00:00:00.000002Z', '--until', '2026-01-03'], [BROKEN]],
    [['--until', '2026-01-01T00:00:00.000001Z'], []],
    [['--until', '2026-01-01T00:00:00.000002Z'], ['first']],
    [['--search', 'ÄRGER'], [BROKEN]],
    [['--search', "it's 100% broken \\ "], [BROKEN]],
    [['--search', '%'], [BROKEN]],
    [['--search', "' OR 1=1 --"], []],
    [['--service', "' OR 1=1 --"], []],
    [['--level', 'info', '--search', 'broken'], []],
  ])('with %j are the newest matching entries, oldest first', async (flags, found) => {
    expect(await messages('demo', ...flags)).toEqual(found)
  })

  test('that match nothing are no error', async () => {
    expect(await logs('--project', 'demo', '--search', 'not this')).toEqual({ stdout: '', stderr: '' })
  })

  test('have the metadata exactly as it was sent', async () => {
    const hard = ['logs', '--project', 'demo', '--search', 'hard']
    expect(await sluice(...hard, '--json')).toContain(`,"metadata":${HARD}}\n`)
    expect(await sluice(...hard)).toBe(`2026-01-03T00:00:00.000Z WARN    hard ${HARD}\n`)
  })

  test.each([
    [{ CLICKHOUSE_PASSWORD: 'wrong' }, 'rejects the user'],
    [{ CLICKHOUSE_DATABASE: 'not_there' }, '`./sluice migrate` creates them'],
  ])('fail with the reason and advice with %j', async (environment, reason) => {
    expect(await failing(['logs', '--project', 'demo'], environment)).toContain(reason)
  })
})

describe('entries of the future', () => {
  const AHEAD = '{"level":"error","message":"ahead","timestamp":"2261-01-01T00:00:00Z"}'
  const NOTICE = /^sluice: entries of the future are not shown \(--until \d{4}-\d\d-\d\dT[\d:.]+Z\)\n$/

  beforeAll(async () => {
    const soon = new Date(Date.now() + 600_000).toISOString()
    await store('hidden', [
      '{"level":"info","message":"now"}',
      `{"level":"info","message":"soon","timestamp":"${soon}"}`,
      ...Array.from({ length: 3 }, () => AHEAD),
    ])
  })

  test.each([
    [[], ['now', 'soon'], NOTICE],
    [['--since', '5m'], ['now', 'soon'], NOTICE],
    [['--level', 'info'], ['now', 'soon'], /^$/],
    [['--level', 'error'], [], NOTICE],
    [['--from', '2261-01-01', '--until', '2261-01-02', '--limit', '2'], ['ahead', 'ahead'], /^$/],
  ])('do not hide current ones, and are reported if they match: %j', async (flags, found, notice) => {
    const { stdout, stderr } = await logs('--project', 'hidden', '--json', ...flags)
    expect(jsonLines(stdout).map(({ message }) => message)).toEqual(found)
    expect(stderr).toMatch(notice)
  })
})

describe('logs --where', () => {
  const values = {
    integer: '42',
    text: '"42"',
    decimal: '42.0',
    exponent: '4.2e1',
    other: '43',
    yes: 'true',
    'yes-text': '"true"',
    nothing: 'null',
    'nothing-text': '"null"',
    empty: '""',
    object: '{"a":42}',
    array: '[42]',
    large: '9007199254740993',
    neighbour: '9007199254740992',
    huge: '123456789012345678901234567890',
    quotes: String.raw`"it's \" \\ x' OR 1=1 --"`,
    unicode: '"Ärger 東京"',
  }
  beforeAll(async () => {
    const entries = Object.entries(values).map(
      ([name, value], index) =>
        `{"level":"info","message":"${name}","environment":"${index === 0 ? 'staging' : 'production'}",` +
        `"timestamp":"2026-01-01T00:00:${String(index).padStart(2, '0')}Z",` +
        `"metadata":{"v":${value},"deep":{"er":{"v":${value}}},"flat.v":${value},"n":${index}}}`,
    )
    await store('where', [
      ...entries,
      '{"level":"info","message":"absent","metadata":{"n":100}}',
      '{"level":"info","message":"next to huge numbers","metadata":{"v":44, "big": 1e400,"bigger":123456789012345678901234567890}}',
      '{"level":"info","message":"dots","metadata":{"a.b":1,"c d":{"e=\\"":2}}}',
    ])
  })

  test.each([
    ['v=42', ['integer', 'text', 'decimal', 'exponent']],
    ['v=42.0', ['integer', 'decimal', 'exponent']],
    ['v="42"', ['text']],
    ['v=true', ['yes', 'yes-text']],
    ['v="true"', ['yes-text']],
    ['v=null', ['nothing', 'nothing-text']],
    ['v="null"', ['nothing-text']],
    ['v=', ['empty']],
    ['v={"a":42}', []],
    ['v=9007199254740993', ['large']],
    ['v=9007199254740992', ['neighbour']],
    ['v=123456789012345678901234567890', ['huge']],
    [String.raw`v=it's " \ x' OR 1=1 --`, ['quotes']],
    ['v=Ärger 東京', ['unicode']],
    ['v=ärger 東京', []],
    ["v=' OR 1=1 --", []],
    ['v=44', ['next to huge numbers']],
    // A path leads through nested names, or is one name with dots.
    ['deep.er.v=43', ['other']],
    ['flat.v=43', ['other']],
    ['"flat.v"=43', ['other']],
    ['a.b=1', ['dots']],
    [String.raw`"c d"."e=\""=2`, ['dots']],
    ['deep.er=43', []],
    ['v.a=43', []],
    ["v'=43", []],
  ])('metadata.%s', async (condition, expected) => {
    expect(await messages('where', '--where', `metadata.${condition}`)).toEqual(expected)
  })

  test('all conditions must hold, with the other filters', async () => {
    const where = ['where', '--where', 'metadata.v=42'] as const
    expect(await messages(...where, '--where', 'metadata.n=1')).toEqual(['text'])
    expect(await messages(...where, '--where', 'metadata.n=99')).toEqual([])
    expect(await messages(...where, '--environment', 'staging')).toEqual(['integer'])
    expect(await messages(...where, '--environment', 'staging,production')).toHaveLength(4)
  })
})

test('logs prints entries safely, with --stack the stack traces, and with --json the fields that clients send', async () => {
  const sent = {
    level: 'error',
    message: 'it\u001B[2J\r\nbroke',
    service: 'web\u009B',
    stack: 'Error: it broke\n    at \u001B[31mf (a.js:1)\n',
    metadata: { '\u009B': 1 },
  }
  await store('stacks', [JSON.stringify({ ...sent, timestamp: '2026-01-01T00:00:00.123456Z' })])
  const line = String.raw`2026-01-01T00:00:00.123Z ERROR   web\u009b it\e[2J\r\nbroke {"\u009b":1}` + '\n'
  expect(await sluice('logs', '--project', 'stacks')).toBe(line)
  expect(await sluice('logs', '--project', 'stacks', '--stack')).toBe(
    `${line}    Error: it broke\n        at \\e[31mf (a.js:1)\n`,
  )
  const added = {
    id: expect.any(String) as string,
    projectId: 'stacks',
    receivedAt: expect.any(String) as string,
  }
  expect(await objects('logs', '--project', 'stacks')).toEqual([
    { ...sent, ...added, timestamp: '2026-01-01T00:00:00.123456Z' },
  ])
})

test('logs --follow prints each entry that arrives, late or not, once, until it is interrupted', async () => {
  const nowMs = Date.now()
  const add = (entry: object, afterMs: number) =>
    store('followed', [JSON.stringify({ level: 'info', ...entry })], nowMs + afterMs)
  await add({ message: 'before' }, 0)
  const used = context()
  const running = run(['logs', '--project', 'followed', '--level', 'info', '-f', '--json'], used)
  const prints = (...expected: string[]) =>
    vi.waitFor(() => expect(jsonLines(used.written.stdout).map(({ message }) => message)).toEqual(expected))
  await prints('before')
  await add({ message: 'not requested', level: 'warn' }, 1)
  await add({ message: 'new' }, 1)
  await prints('before', 'new')
  await add({ message: 'old', timestamp: '2001-01-01T00:00:00Z' }, -1_000)
  await prints('before', 'new', 'old')
  await sleep(3 * followLimits.pollIntervalMs)
  used.interrupt()
  expect(await running).toBe(130)
  await prints('before', 'new', 'old')
})
