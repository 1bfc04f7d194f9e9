import { type ClickHouseClient, deadLettersTable, logsTable } from '@sluice/clickhouse'
import { queueNames } from '@sluice/queue'
import { connectRedis } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { run } from '../../src/run.ts'
import { testInstallation } from '../installation.ts'

const { context, sluice, failing, database, connect, redisUrl, prefix } = testInstallation()
let client: ClickHouseClient

beforeAll(async () => {
  await sluice('migrate')
  client = connect({ database })
})
afterAll(() => client.close())

const row = (message: string, given: Record<string, string> = {}) => ({
  id: randomUUID(),
  project_id: 'shop',
  timestamp: '2026-11-20 10:00:00.000000',
  received_at: '2026-11-20 10:00:00.000',
  expires_on: new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10),
  level: 'info',
  message,
  metadata_text: '{"user":{"id":42}}',
  ...given,
})

beforeEach(async () => {
  for (const table of [logsTable, deadLettersTable])
    await client.command({ query: `TRUNCATE TABLE ${table}` })
  const rows = [
    row('one'),
    row('error', { level: 'error' }),
    row('later', { timestamp: '2026-11-21 10:00:00.000000' }),
    row('of user 7', { metadata_text: '{"user":{"id":7}}' }),
    row("it's quoted\\", { service: "o'clock" }),
    row('of another project', { project_id: 'other' }),
  ]
  const letters = rows.map((each) => ({
    id: randomUUID(),
    project_id: each.project_id,
    failed_at: '2026-11-22 10:00:00.000',
    code: 'X',
    reason: 'x',
    text: JSON.stringify({ ...each, id: 'no uuid' }),
  }))
  const unknown = { ...letters[0], id: randomUUID(), project_id: '', text: 'no JSON' }
  await client.insert({ table: logsTable, values: rows, format: 'JSONEachRow' })
  await client.insert({ table: deadLettersTable, values: [...letters, unknown], format: 'JSONEachRow' })
})

async function texts(query: string): Promise<string[]> {
  const result = await client.query({ query: `${query} ORDER BY text`, format: 'JSONEachRow' })
  return (await result.json<{ text: string }>()).map(({ text }) => text)
}
const stored = () => texts(`SELECT message AS text FROM ${logsTable}`)
const letters = () => texts(`SELECT JSONExtractString(text, 'message') AS text FROM ${deadLettersTable}`)

const all = ["it's quoted\\", 'error', 'later', 'of another project', 'of user 7', 'one'].toSorted()
test.each([
  [['level:error'], ['error']],
  [
    ['--until', '2026-11-21'],
    ["it's quoted\\", 'error', 'of user 7', 'one'],
  ],
  [['--from', '2026-11-21'], ['later']],
  [['user.id:7'], ['of user 7']],
  [['user.id:>7', 'NOT', '(level:error', 'OR', 'service:*)', '--until', '2026-11-21'], ['one']],
  [['received_at:2026-11-20', 'timestamp:>=2026-11-21'], ['later']],
  [["service:o'clock", 'QUOTED'], ["it's quoted\\"]],
  [[], all.filter((message) => message !== 'of another project')],
])('rows and dead letters that match %j are deleted, and no others', async (flags, deleted) => {
  const args = ['rows', 'delete', '--project', 'shop', ...flags]
  const found = `${deleted.length} rows and ${deleted.length} dead letters of the project shop`
  expect(await failing(args)).toBe(`sluice: this would permanently delete ${found}. Pass --yes to confirm\n`)
  expect(await stored()).toEqual(all)
  expect(await sluice(...args, '--yes')).toMatch(new RegExp(`^Deleting ${found}, .*\n[^]*Deleted\\.`))
  const left = all.filter((message) => !deleted.includes(message))
  expect(await stored()).toEqual(left)
  expect((await letters()).filter(Boolean)).toEqual(left)
})

test('the project must be named, and an empty id does not match dead letters of unknown projects', async () => {
  expect(await run(['rows', 'delete', '--yes'], context())).toBe(2)
  expect(await failing(['rows', 'delete', '--project', '', '--yes'])).toContain('is not the id of a project')
})

test('a project is deleted with its rows, which are named first', async () => {
  await sluice('projects', 'create', 'shop')
  const args = ['projects', 'delete', 'shop', '--rows']
  expect(await failing(args)).toContain('the project shop and its 0 keys, and 5 rows and 5 dead letters')
  expect(await sluice('projects', 'list')).toContain('shop')
  expect(await sluice(...args, '--yes')).toMatch(
    /^Deleted the project shop\. Its id is free again on [^]*\nDeleted\./,
  )
  expect(await stored()).toEqual(['of another project'])
  expect(await sluice('projects', 'list')).not.toContain('shop')
})

test('rows are deleted when the entries that were accepted before are stored, and Ctrl-C before that deletes none', async () => {
  const redis = connectRedis(redisUrl, { failFast: false })
  onTestFinished(() => redis.disconnect())
  const { waitKey } = queueNames(prefix)
  // A chunk of 2001.
  await redis.lpush(waitKey, '00e3c7c0-0000-7000-8000-000000000000')
  const used = context()
  const running = run(['rows', 'delete', '--project', 'shop', '--yes'], used)
  await vi.waitFor(() => expect(used.written.stdout).toContain('Deleting 5 rows'))
  used.interrupt()
  expect(await running).toBe(130)
  expect(used.written.stdout).toContain('no row is deleted')
  expect(await stored()).toEqual(all)
  await redis.del(waitKey)
})

test('Ctrl-C during the deletion leaves it running, and says how to see it', async () => {
  await client.command({ query: `SYSTEM STOP MERGES ${logsTable}` })
  const used = context()
  const running = run(['rows', 'delete', '--project', 'shop', '--yes'], used)
  await vi.waitFor(() => expect(used.written.stdout).toContain('1 parts of the tables are left\n'))
  used.interrupt()
  expect(await running).toBe(130)
  const [, query = ''] = /To see it: (.*)\n$/.exec(used.written.stdout) ?? []
  const result = await client.query({ query, format: 'JSONEachRow' })
  expect(await result.json()).toContainEqual(expect.objectContaining({ table: logsTable, is_done: 0 }))
  await client.command({ query: `SYSTEM START MERGES ${logsTable}` })
  await vi.waitFor(async () => expect(await stored()).toEqual(['of another project']))
})
