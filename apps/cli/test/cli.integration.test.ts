import { hashApiKey, Registry } from '@sluice/projects'
import { type ClickHouseClient, connectClickHouse, connectRedis } from '@sluice/runtime'
import {
  type Entry,
  logsInsertQuery,
  parseJsonExactly,
  redisNames,
  shapeRow,
  startRows,
} from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Context } from '../src/context.ts'
import { followLimits } from '../src/logs/follow.ts'
import { run } from '../src/run.ts'
import { type FakeContext, fakeContext } from './fake-context.ts'

const { redisUrl, clickhouse } = inject('services')
const prefix = `test-${randomUUID()}`
const database = `cli_${randomUUID().replaceAll('-', '')}`
const access = { url: clickhouse.url, username: clickhouse.username, password: clickhouse.password, database }
let client: ClickHouseClient

function context(environment = {}, given: Partial<Context> = {}): FakeContext {
  return fakeContext({
    ...given,
    environment: {
      REDIS_URL: redisUrl,
      SLUICE_PREFIX: prefix,
      CLICKHOUSE_URL: access.url,
      CLICKHOUSE_USERNAME: access.username,
      CLICKHOUSE_PASSWORD: access.password,
      CLICKHOUSE_DATABASE: database,
      ...environment,
    },
  })
}

/** Runs a command that must succeed, and gives what it printed. */
async function sluice(...args: string[]): Promise<string> {
  const around = context()
  if ((await run(args, around)) !== 0) throw new Error(around.written.stderr)
  return around.written.stdout
}

const jsonLines = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

/** Stores entries, given as JSON text, as the API and the worker would. */
async function store(projectId: string, entries: readonly string[], receivedAtMs = Date.now()) {
  const stamp = startRows({ projectId, retentionDays: 30, receivedAtMs })
  const lines = entries.map((entry) => {
    const shaped = shapeRow(parseJsonExactly(entry) as Entry, randomUUID(), stamp, true)
    if ('error' in shaped) throw new Error(shaped.error.message)
    return shaped.row
  })
  await client.command({ query: `${logsInsertQuery}\n${lines.join('')}` })
}

beforeAll(async () => {
  await sluice('migrate')
  client = connectClickHouse(access, { requestTimeoutMs: 10_000, connectionsMax: 2 })
})

afterAll(async () => {
  await client.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` })
  await client.close()
  const redis = connectRedis(redisUrl, { failFast: false })
  const keys = await redis.keys(`*${prefix}*`)
  if (keys.length > 0) await redis.del(keys)
  redis.disconnect()
})

test('migrate says what it applied, and that nothing was missing', async () => {
  const elsewhere = ['--clickhouse-database', `${database}_new`]
  expect(await sluice('migrate', ...elsewhere)).toContain('Applied 1 (logs).\n')
  await client.command({ query: `DROP DATABASE ${database}_new SYNC` })
  expect(await sluice('migrate')).toMatch(/is up to date: \d+ migrations, 0 of them applied now\.\n$/)
})

describe('projects and keys', () => {
  test('are made, listed and revoked', async () => {
    expect(await sluice('projects', 'create', 'shop', '--retention-days', '7')).toContain(
      'Made the project shop',
    )
    expect(jsonLines(await sluice('projects', 'list', '--json'))).toMatchObject([
      { id: 'shop', enabled: true, retentionDays: 7 },
    ])
    expect(await sluice('projects', 'list')).toMatch(/^PROJECT .*\nshop +enabled +7 days /)

    const flags = ['--project', 'shop', '--name', 'web', '--expires-in', '90d', '--scope', 'ingest,read']
    const [made] = jsonLines(await sluice('keys', 'create', ...flags, '--json'))
    expect(made).toMatchObject({ projectId: 'shop', name: 'web', scopes: ['ingest', 'read'] })
    expect(made?.['key']).toMatch(/^slk_[0-9A-Za-z]{49}$/)

    await sluice('keys', 'revoke', String(made?.['id']))
    expect(await sluice('keys', 'list', '--project', 'shop')).toMatch(/ revoked .* web\n$/)
    expect(await sluice('keys', 'list', '--project', 'shop', '--json')).not.toContain(made?.['key'])
  })

  test('limits on traffic are changed one by one, and given back to the default', async () => {
    await sluice('projects', 'create', 'limited')
    const flags = [
      '--entries-per-second',
      '1000',
      '--burst-entries',
      '5000',
      '--bytes-per-second',
      'unlimited',
    ]
    expect(await sluice('projects', 'update', 'limited', ...flags)).toBe(
      'Limits of the project limited: 1000 entries a second, 5000 at once; unlimited bytes a second, default at once.\n',
    )
    await sluice('projects', 'update', 'limited', '--burst-entries', 'default')
    expect(jsonLines(await sluice('projects', 'list', '--json'))).toContainEqual(
      expect.objectContaining({ id: 'limited', limits: { entriesPerSecond: 1000, bytesPerSecond: 0 } }),
    )
  })

  test.each([[[]], [['--entries-per-second', 'many']], [['--entries-per-second', '-1']]])(
    'limits are not changed by %j',
    async (flags) => {
      const around = context()
      expect(await run(['projects', 'update', 'limited', ...flags], around)).toBe(2)
      expect(around.written.stderr).not.toBe('')
    },
  )

  test('a key is rotated: the old one goes on for a while, and the new one is shown once', async () => {
    await sluice('projects', 'create', 'rotated')
    const flags = ['--project', 'rotated', '--name', 'web', '--scope', 'read']
    const [old] = jsonLines(await sluice('keys', 'create', ...flags, '--json'))
    const around = context()
    const beforeMs = Date.now()
    expect(await run(['keys', 'rotate', String(old?.['id']), '--overlap', '2h'], around)).toBe(0)
    expect(around.written.stdout).toMatch(/^slk_[0-9A-Za-z]{49}\n$/)
    expect(around.written.stderr).toContain(`in place of ${String(old?.['id'])}`)
    const [first, second] = jsonLines(await sluice('keys', 'list', '--project', 'rotated', '--json'))
    expect(first).toMatchObject({ id: old?.['id'], state: 'active', replacedBy: second?.['id'] })
    const overlapMs = Date.parse(String(first?.['expiresAt'])) - beforeMs
    expect(overlapMs).toBeGreaterThanOrEqual(2 * 3_600_000)
    expect(overlapMs).toBeLessThan(3 * 3_600_000)
    expect(second).toMatchObject({ name: 'web', scopes: ['read'], state: 'active' })
    expect(second).not.toHaveProperty('expiresAt')

    const [third] = jsonLines(await sluice('keys', 'rotate', String(second?.['id']), '--json'))
    expect(third).toMatchObject({ name: 'web', replaced: { id: second?.['id'] } })
    expect(third?.['key']).toMatch(/^slk_/)
  })

  test('keys are listed with when they were last used', async () => {
    await sluice('projects', 'create', 'used')
    const [made] = jsonLines(await sluice('keys', 'create', '--project', 'used', '--name', 'x', '--json'))
    expect(await sluice('keys', 'list', '--project', 'used')).toMatch(
      /^KEY .* LAST USED +NAME\n.* never +never +x\n$/,
    )
    const redis = connectRedis(redisUrl, { failFast: false })
    const registry = new Registry(redis, redisNames(prefix).registryPrefix)
    await registry.noteKeysUsed(new Map([[hashApiKey(String(made?.['key'])), Date.UTC(2026, 0, 1)]]))
    redis.disconnect()
    expect(await sluice('keys', 'list', '--project', 'used')).toMatch(
      / never +2026-01-01T00:00:00.000Z +x\n$/,
    )
  })

  test('a project is disabled and enabled', async () => {
    await sluice('projects', 'create', 'paused')
    expect(await sluice('projects', 'disable', 'paused')).toContain('is disabled')
    expect(await sluice('projects', 'list')).toMatch(/^paused +disabled /m)
    expect(await sluice('projects', 'enable', 'paused')).toContain('is enabled')
    expect(await sluice('projects', 'list')).toMatch(/^paused +enabled /m)
  })

  test('a project is deleted when a person types its id, or a script says so', async () => {
    const answering = (answer: string): FakeContext =>
      context({}, { stdin: Readable.from([answer]), stdinIsTerminal: true })
    await sluice('projects', 'create', 'doomed')
    await sluice('keys', 'create', '--project', 'doomed')
    const nobody = context()
    expect(await run(['projects', 'delete', 'doomed'], nobody)).toBe(1)
    expect(nobody.written.stderr).toContain('say --yes')
    for (const answer of ['', '\n', 'y\n', 'doom\n']) {
      const unsure = answering(answer)
      expect(await run(['projects', 'delete', 'doomed'], unsure)).toBe(1)
      expect(unsure.written.stderr).toContain('nothing was done')
    }
    expect(await sluice('projects', 'list')).toContain('doomed')

    const sure = answering('doomed\n')
    expect(await run(['projects', 'delete', 'doomed'], sure)).toBe(0)
    expect(sure.written.stderr).toContain('The project doomed and its key will be gone for ever')
    expect(sure.written.stdout).toContain('Its rows stay until they expire')
    await sluice('projects', 'create', 'doomed-too')
    await sluice('projects', 'delete', 'doomed-too', '--yes')
    expect(await sluice('projects', 'list')).not.toContain('doomed')
    const again = context()
    expect(await run(['projects', 'create', 'doomed'], again)).toBe(1)
    expect(again.written.stderr).toContain('its id is free again on')
  })

  test('a key goes to the standard output alone, so that a script can take it', async () => {
    await sluice('projects', 'create', 'scripted')
    const around = context()
    expect(await run(['keys', 'create', '--project', 'scripted'], around)).toBe(0)
    expect(around.written.stdout).toMatch(/^slk_[0-9A-Za-z]{49}\n$/)
    expect(around.written.stderr).toContain('It is not shown again')
  })

  test.each([
    [['projects', 'create', 'Not-Allowed'], 'a project is named by'],
    [['projects', 'create', 'odd', '--retention-days', '5'], 'a retention is one of'],
    [['projects', 'update', 'nowhere', '--burst-entries', '5'], 'there is no project nowhere'],
    [['projects', 'update', 'odd', '--bytes-per-second', '5'], 'bytesPerSecond is a whole number from 1024'],
    [['keys', 'create', '--project', 'nowhere'], 'there is no project nowhere'],
    [['keys', 'list', '--project', 'nowhere'], 'there is no project nowhere'],
    [['keys', 'revoke', 'key_0'], 'there is no key key_0'],
    [['keys', 'rotate', 'key_0'], 'there is no key key_0'],
    [['projects', 'disable', 'nowhere'], 'there is no project nowhere'],
    [['projects', 'enable', 'nowhere'], 'there is no project nowhere'],
    [['projects', 'delete', 'nowhere', '--yes'], 'there is no project nowhere'],
  ])('what is refused says why: %j', async (args, reason) => {
    const around = context()
    expect(await run(args, around)).toBe(1)
    expect(around.written.stderr).toContain(`sluice: ${reason}`)
  })
})

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

  test('prints the newest that match, oldest first', async () => {
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
    [['--search', 'broken'], 1],
    [['--search', 'ÄRGER'], 1],
    [['--search', "it's 100% broken \\ "], 1],
    [['--search', '%'], 1],
    [['--search', "' OR 1=1 --"], 0],
    [['--level', 'info', '--search', 'broken'], 0],
  ])('%j matches %i', async (flags, count) => {
    expect(await messages(...flags)).toHaveLength(count)
  })

  test('gives metadata back as it was sent, digit by digit', async () => {
    expect(await sluice('logs', '--project', 'demo', '--search', 'hard', '--json')).toContain(
      `,"metadata":${HARD}}\n`,
    )
    expect(await sluice('logs', '--project', 'demo', '--search', 'hard')).toBe(
      `2026-01-03T00:00:00.000Z WARN    hard ${HARD}\n`,
    )
  })

  test.each([
    [{ CLICKHOUSE_PASSWORD: 'wrong' }, 'refuses the user'],
    [{ CLICKHOUSE_DATABASE: 'not_there' }, '`sluice migrate` makes them'],
  ])('says what is wrong with %j', async (environment, reason) => {
    const around = context(environment)
    expect(await run(['logs', '--project', 'demo'], around)).toBe(1)
    expect(around.written.stderr).toContain(reason)
  })
})

test('logs --follow prints what arrives, late or not, each once, until it is interrupted', async () => {
  const nowMs = Date.now()
  await store('followed', ['{"level":"info","message":"before"}'], nowMs)
  const around = context()
  const running = run(['logs', '--project', 'followed', '--level', 'info', '-f', '--json'], around)
  const printed = (): unknown[] => jsonLines(around.written.stdout).map(({ message }) => message)
  const until = async (count: number): Promise<void> => {
    while (printed().length < count) await sleep(50)
  }
  await until(1)
  await store(
    'followed',
    ['{"level":"info","message":"new"}', '{"level":"warn","message":"not asked for"}'],
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
  around.interrupt()
  expect(await running).toBe(130)
  expect(printed()).toEqual(['before', 'new', 'old'])
})
