import { type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { connectRedis } from '@sluice/runtime'
import { randomUUID } from 'node:crypto'
import { inject } from 'vitest'
import { run } from '../src/run.ts'
import { type FakeContext, fakeContext } from './fake-context.ts'

/** A separate installation for one test file: a prefix in the shared Redis, and a database in the shared ClickHouse. */
export function testInstallation() {
  const { redisUrl, clickhouse } = inject('services')
  const prefix = `test-${randomUUID()}`
  const database = `cli_${randomUUID().replaceAll('-', '')}`
  const { url, username, password } = clickhouse

  function context(
    environment: Record<string, string> = {},
    given: Parameters<typeof fakeContext>[0] = {},
  ): FakeContext {
    return fakeContext({
      ...given,
      environment: {
        REDIS_URL: redisUrl,
        SLUICE_PREFIX: prefix,
        CLICKHOUSE_URL: url,
        CLICKHOUSE_USERNAME: username,
        CLICKHOUSE_PASSWORD: password,
        CLICKHOUSE_DATABASE: database,
        ...environment,
      },
    })
  }

  /** Runs a command that must succeed, and returns its stdout. */
  async function sluice(...args: string[]): Promise<string> {
    const used = context()
    if ((await run(args, used)) !== 0) throw new Error(used.written.stderr)
    return used.written.stdout
  }

  /** A client for ClickHouse. `access` names the database to use. */
  function connect(access: { database: string }): ClickHouseClient {
    return connectClickHouse(
      { url, username, password, ...access },
      { requestTimeoutMs: 10_000, connectionsMax: 2 },
    )
  }

  async function dropDatabase(name = database): Promise<void> {
    const client = connect({ database: 'default' })
    await client.command({ query: `DROP DATABASE IF EXISTS ${name} SYNC` })
    await client.close()
  }

  async function deleteRedisKeys(): Promise<void> {
    const redis = connectRedis(redisUrl, { failFast: false })
    const keys = await redis.keys(`*${prefix}*`)
    if (keys.length > 0) await redis.del(keys)
    redis.disconnect()
  }

  return { redisUrl, prefix, database, context, sluice, connect, deleteRedisKeys, dropDatabase }
}

export const jsonLines = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
