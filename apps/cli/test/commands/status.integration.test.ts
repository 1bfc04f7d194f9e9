import { queueNames } from '@sluice/queue'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { run } from '../../src/run.ts'
import type { FakeContext } from '../fake-context.ts'
import { jsonLines, testInstallation } from '../installation.ts'

const { context, sluice, redisUrl, prefix } = testInstallation()
let redis: RedisConnection

beforeAll(async () => {
  await sluice('migrate')
  redis = connectRedis(redisUrl, { failFast: false })
})
afterAll(() => redis.disconnect())

const addRows = (count: number) => redis.hincrby(queueNames(prefix).totalsKey, 'added', count)

test('the status has rates over the interval, the backlog, the processes and the dead letters', async () => {
  await addRows(500)
  const used = context()
  const adding = setInterval(() => void addRows(10), 20)
  expect(await run(['status', '--json', '--interval', '1'], used)).toBe(0)
  clearInterval(adding)
  const [status, ...more] = jsonLines(used.written.stdout) as unknown as {
    queue: { rows: number; rates: { intervalS: number; added: number } }
  }[]
  expect(more).toEqual([])
  expect(status).toMatchObject({
    queue: { waiting: 0, inHand: 0, failed: 0 },
    shards: [{ shard: 0 }],
    deadLetters: { total: 0, today: 0 },
    servers: [{ usedBytes: expect.any(Number) as number }],
    processes: [],
    errors: [],
  })
  expect(status?.queue.rows).toBeGreaterThan(500)
  expect(status?.queue.rates.intervalS).toBeGreaterThanOrEqual(1)
  expect(status?.queue.rates.added).toBeGreaterThan(0)
})

test.each([
  ['REDIS_URL', 'redis://me:secret@127.0.0.1:1', 'Redis at redis://127.0.0.1:1'],
  ['CLICKHOUSE_URL', 'http://127.0.0.1:1', 'ClickHouse at http://127.0.0.1:1'],
  ['CLICKHOUSE_URL', '', 'no ClickHouse address is configured'],
])('with %s=%s, the rest is shown, and the error with exit code 1', async (variable, address, error) => {
  const used = context({ [variable]: address })
  expect(await run(['status', '--json', '--interval', '1'], used)).toBe(1)
  const [status] = jsonLines(used.written.stdout)
  expect(status?.['queue'] === null).toBe(variable === 'REDIS_URL')
  expect(status?.['deadLetters'] === null).toBe(variable === 'CLICKHOUSE_URL')
  expect(status?.['errors']).toEqual([expect.stringContaining(error)])
})

/** Runs `status --watch` until its output matches, and interrupts it. It must succeed. @returns the output */
async function watchUntil(text: string | RegExp, used: FakeContext, ...flags: string[]): Promise<string> {
  const running = run(['status', '--watch', '--interval', '1', ...flags], used)
  await vi.waitFor(() => expect(used.written.stdout).toMatch(text))
  used.interrupt()
  expect(await running).toBe(0)
  return used.written.stdout
}

test('--watch refreshes a terminal until Ctrl-C, which is success', async () => {
  const stdout = await watchUntil('/s stored', context({}, { terminal: true }))
  const [before, ...screens] = stdout.split('\u001B[2J')
  expect(before).toBe('')
  expect(screens.length).toBeGreaterThanOrEqual(2)
  expect(screens[0]).toContain('known after the next refresh')
})

test('--watch prints one screen after another where there is no terminal, also if a service is unavailable', async () => {
  const used = context({ CLICKHOUSE_URL: 'http://127.0.0.1:1' })
  const stdout = await watchUntil(/Error: ClickHouse at[^]*\/s stored[^]*Error: ClickHouse at/, used)
  expect(stdout).not.toContain('\u001B')
  expect(stdout.split('\n\nSluice, ').length).toBeGreaterThanOrEqual(2)
})

test('--watch --json prints one object per line, each with rates', async () => {
  const stdout = await watchUntil('}\n{', context(), '--json')
  const lines = jsonLines(stdout.slice(0, stdout.lastIndexOf('\n') + 1))
  expect(lines.length).toBeGreaterThanOrEqual(2)
  for (const line of lines) expect(line).toMatchObject({ queue: { rates: { added: 0 } } })
})
