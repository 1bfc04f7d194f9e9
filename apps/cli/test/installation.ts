import { type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { connectRedis } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { afterAll, expect, inject } from 'vitest'
import { run } from '../src/run.ts'
import { type FakeContext, fakeContext } from './fake-context.ts'

/**
 * A separate installation for one test file: a prefix in the shared Redis, and a database in the shared ClickHouse. What they contain is
 * deleted after the tests.
 */
export function testInstallation() {
  const { redisUrl, clickhouse } = inject('services')
  const prefix = `test-${randomUUID()}`
  const database = `cli_${randomUUID().replaceAll('-', '')}`
  const { url, username, password } = clickhouse

  function context(
    environment: Record<string, string> = {},
    given: Parameters<typeof fakeContext>[0] = {},
  ): FakeContext {
    const access = { CLICKHOUSE_URL: url, CLICKHOUSE_USERNAME: username, CLICKHOUSE_PASSWORD: password }
    const names = { REDIS_URL: redisUrl, SLUICE_PREFIX: prefix, CLICKHOUSE_DATABASE: database }
    return fakeContext({ ...given, environment: { ...access, ...names, ...environment } })
  }

  /** Runs a command that must succeed, and returns its stdout. */
  async function sluice(...args: string[]): Promise<string> {
    const used = context()
    if ((await run(args, used)) !== 0) throw new Error(used.written.stderr)
    return used.written.stdout
  }

  /** Runs a command with `--json` that must succeed, and returns its objects. */
  const objects = async (...args: string[]) => jsonLines(await sluice(...args, '--json'))

  /** Runs a command that must fail with exit code 1, and returns its stderr. */
  async function failing(args: readonly string[], environment: Record<string, string> = {}): Promise<string> {
    const used = context(environment)
    expect(await run(args, used)).toBe(1)
    return used.written.stderr
  }

  const connect = (access: { database: string }): ClickHouseClient =>
    connectClickHouse({ url, username, password, ...access }, { requestTimeoutMs: 10_000, connectionsMax: 2 })

  afterAll(async () => {
    const client = connect({ database: 'default' })
    await client.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` })
    await client.close()
    const redis = connectRedis(redisUrl, { failFast: false })
    const keys = await redis.keys(`*${prefix}*`)
    if (keys.length > 0) await redis.del(keys)
    redis.disconnect()
  })
  return { redisUrl, prefix, database, context, sluice, objects, failing, connect }
}

export const jsonLines = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
