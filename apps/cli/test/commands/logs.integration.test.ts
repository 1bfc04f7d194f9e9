import { type ClickHouseClient, logsInsertQuery } from '@sluice/clickhouse'
import { makeRowPrefix, parseJsonExactly, shapeRow } from '@sluice/rows'
import type { Entry } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { followLimits } from '../../src/logs/follow.ts'
import { SLUICE } from '../../src/options.ts'
import { run } from '../../src/run.ts'
import { jsonLines, testInstallation } from '../installation.ts'

const { context, sluice, connect, database, dropDatabase } = testInstallation()
let client: ClickHouseClient

beforeAll(async () => {
  await sluice('migrate')
  client = connect({ database })
})

afterAll(async () => {
  await client.close()
  await dropDatabase()
})

/** Stores entries, given as JSON, as the API and the worker would. */
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
  test.each([[[]], [['--json']]])('reports a project without entries on stderr, with %j', async (flags) => {
    for (const project of ['nope', "x' OR 1=1"]) {
      const used = context()
      expect(await run(['logs', '--project', project, ...flags], used)).toBe(0)
      expect(used.written).toEqual({
        stdout: '',
        stderr: `sluice: the project ${project} has no entries; \`${SLUICE} projects list\` lists the projects\n`,
      })
    }
  })

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
    const none = context()
    expect(await run(['logs', '--project', 'demo', '--search', 'not this'], none)).toBe(0)
    expect(none.written).toEqual({ stdout: '', stderr: '' })
    expect(await messages()).toEqual(['first', "It's 100% BROKEN \\ Ärger", 'hard'])
    expect(await messages('--limit', '2')).toEqual(["It's 100% BROKEN \\ Ärger", 'hard'])
    expect(await messages('--limit', '0')).toEqual([])
  })

  test.each([
    [['--level', 'error,warn'], 2],
    [['--level', 'error', '--level', 'info'], 2],
    [['--service', 'web'], 1],
    [['--since', '2026-01-02'], 2],
    [['--from', '2026-01-01T00:00:00.000002Z'], 2],
    [['--from', '2026-01-01', '--until', '2026-01-03'], 2],
    [['--until', '2026-01-01T00:00:00.000001Z'], 0],
    [['--until', '2026-01-01T00:00:00.000002Z'], 1],
    [['--search', 'broken'], 1],
    [['--search', 'ÄRGER'], 1],
    [['--search', "it's 100% broken \\ "], 1],
    [['--search', '%'], 1],
    [['--search', "' OR 1=1 --"], 0],
    [['--service', "' OR 1=1 --"], 0],
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

/** Runs `sluice logs` in a project with entries of the future. */
async function hiddenLogs(...flags: string[]) {
  const used = context()
  const code = await run(['logs', '--project', 'hidden', '--json', ...flags], used)
  const found = jsonLines(used.written.stdout).map(({ message }) => message)
  return { code, found, stderr: used.written.stderr }
}

describe('entries of the future', () => {
  const AHEAD = '{"level":"error","message":"ahead","timestamp":"2261-01-01T00:00:00Z"}'

  beforeAll(async () => {
    await store('hidden', [
      '{"level":"info","message":"now"}',
      `{"level":"info","message":"soon","timestamp":"${new Date(Date.now() + 600_000).toISOString()}"}`,
      ...Array.from({ length: 3 }, () => AHEAD),
    ])
  })

  test.each([[[]], [['--since', '5m']], [['--from', '5m']]])(
    'do not hide current ones with %j, and are reported on stderr',
    async (flags) => {
      const { code, found, stderr } = await hiddenLogs(...flags)
      expect({ code, found }).toEqual({ code: 0, found: ['now', 'soon'] })
      expect(stderr).toMatch(
        /^sluice: entries of the future are not shown \(--until \d{4}-\d\d-\d\dT[\d:.]+Z\)\n$/,
      )
    },
  )

  test('are looked for with the other conditions', async () => {
    expect((await hiddenLogs('--level', 'info')).stderr).toBe('')
    expect((await hiddenLogs('--level', 'error')).stderr).toMatch(/entries of the future are not shown/)
    expect((await hiddenLogs('--level', 'error')).found).toEqual([])
  })

  test('are printed with a later --until, without the report', async () => {
    const { found, stderr } = await hiddenLogs(
      '--from',
      '2261-01-01',
      '--until',
      '2261-01-02',
      '--limit',
      '3',
    )
    expect(found).toEqual(['ahead', 'ahead', 'ahead'])
    expect(stderr).toBe('')
  })
})

async function matching(...conditions: string[]): Promise<unknown[]> {
  const flags = conditions.flatMap((condition) => ['--where', condition])
  const output = await sluice('logs', '--project', 'where', '--json', ...flags)
  return jsonLines(output).map(({ message }) => message)
}

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
    ['42', ['integer', 'text', 'decimal', 'exponent']],
    ['42.0', ['integer', 'decimal', 'exponent']],
    ['"42"', ['text']],
    ['"43"', []],
    ['true', ['yes', 'yes-text']],
    ['"true"', ['yes-text']],
    ['false', []],
    ['null', ['nothing', 'nothing-text']],
    ['"null"', ['nothing-text']],
    ['', ['empty']],
    ['""', ['empty']],
    ['{"a":42}', []],
    ['9007199254740993', ['large']],
    ['9007199254740992', ['neighbour']],
    ['123456789012345678901234567890', ['huge']],
    [String.raw`it's " \ x' OR 1=1 --`, ['quotes']],
    ['Ärger 東京', ['unicode']],
    ['ärger 東京', []],
    ["' OR 1=1 --", []],
    ['44', ['next to huge numbers']],
  ])('a value equal to %s', async (value, expected) => {
    expect(await matching(`metadata.v=${value}`)).toEqual(expected)
  })

  test('a path leads through nested names, or is one name with dots', async () => {
    expect(await matching('metadata.deep.er.v=43')).toEqual(['other'])
    expect(await matching('metadata.flat.v=43')).toEqual(['other'])
    expect(await matching('metadata."flat.v"=43')).toEqual(['other'])
    expect(await matching('metadata.a.b=1')).toEqual(['dots'])
    expect(await matching(String.raw`metadata."c d"."e=\""=2`)).toEqual(['dots'])
    expect(await matching('metadata.deep.er=43')).toEqual([])
    expect(await matching('metadata.v.a=43')).toEqual([])
    expect(await matching("metadata.v'=43")).toEqual([])
  })

  test('all conditions must hold, with the other filters', async () => {
    expect(await matching('metadata.v=42', 'metadata.n=1')).toEqual(['text'])
    expect(await matching('metadata.v=42', 'metadata.n=99')).toEqual([])
    const flags = ['--where', 'metadata.v=42', '--json']
    for (const [environment, count] of [
      ['staging', 1],
      ['production', 3],
      ['staging,production', 4],
      ['development', 0],
    ] as const) {
      const args = ['logs', '--project', 'where', '--environment', environment, ...flags]
      expect(jsonLines(await sluice(...args))).toHaveLength(count)
    }
  })
})

test('logs --stack prints the stack traces', async () => {
  await store('stacks', [
    String.raw`{"level":"error","message":"it broke","stack":"Error: it broke\n    at \u001b[31mf (a.js:1)\n","timestamp":"2026-01-01T00:00:00Z"}`,
  ])
  const line = '2026-01-01T00:00:00.000Z ERROR   it broke\n'
  expect(await sluice('logs', '--project', 'stacks')).toBe(line)
  expect(await sluice('logs', '--project', 'stacks', '--stack')).toBe(
    `${line}    Error: it broke\n        at \\e[31mf (a.js:1)\n`,
  )
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
