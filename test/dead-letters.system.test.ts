import { eventually } from '@sluice/harness'
import { command, select as selectFrom, withClickHouse } from '@sluice/harness/clickhouse'
import { drainQueue, isEmpty } from '@sluice/harness/drain'
import { scrape, sumOf } from '@sluice/harness/metrics'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { clickhouseEnvironment, type Installation } from '@sluice/local'
import { ChunkQueue, encodeChunk, type NewChunk, queueNames, type QueueNames } from '@sluice/queue'
import { rowAsJson, packBlocks } from '@sluice/rows'
import { encodeBlock, rowOf, textPrefix } from '@sluice/rows/testing'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { randomUUIDv7 } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { textChunk } from '../packages/queue/test/support/text-chunk.ts'
import { runSluice } from './sluice-command.ts'

const ADD_DEADLINE_MS = 5_000

let installation: Installation
let redis: RedisConnection
let names: QueueNames
let queue: ChunkQueue

beforeAll(async () => {
  installation = await startTestInstallation({ query: {} })
  names = queueNames(installation.prefix)
  redis = connectRedis(installation.redisUrl, { failFast: false })
  queue = new ChunkQueue(redis, names)
})

afterAll(async () => {
  await queue?.close()
  redis?.disconnect()
  await installation?.stop()
})

const select = <Row>(query: string): Promise<Row[]> => selectFrom<Row>(installation.clickhouse, query)

/** The value of a metric of the worker. */
async function count(metric: string): Promise<number> {
  return sumOf([await scrape(installation.opsUrls.worker)], metric)
}

/** Stores a dead letter of an earlier failure. */
async function addLetter(text: string, id: string = randomUUIDv7()): Promise<void> {
  const letter = { id, project_id: 'demo', failed_at: '2026-11-20 00:00:00', code: 'X', reason: '', text }
  await withClickHouse(installation.clickhouse, (client) =>
    client.insert({ table: 'dead_letters', values: [letter], format: 'JSONEachRow' }),
  )
}

function row(message: string, id: string = randomUUIDv7()): string {
  const start = textPrefix({ projectId: 'demo', retentionDays: 30, receivedAtMs: Date.now() })
  return rowOf({ level: 'info', message }, id, start)
}

const blocksOf = (rows: readonly string[]): NewChunk => encodeChunk(packBlocks(encodeBlock(rows)))

async function add(chunk: NewChunk): Promise<void> {
  await queue.add(randomUUIDv7(), chunk, performance.now() + ADD_DEADLINE_MS)
}

describe('a row that ClickHouse rejects', () => {
  it('becomes a dead letter with its reason and text, and its neighbours are stored', async () => {
    const bad = row('bad one', 'no uuid')
    const valid = Array.from({ length: 50 }, (_, i) => row(`neighbour ${i}`))
    // The tables accept any row in blocks.
    await add(textChunk([...valid.slice(0, 20), bad, ...valid.slice(20)]))
    await add(blocksOf([row('neighbour of another chunk')]))
    await eventually(async () => {
      const [found] = await select<{ n: number }>(
        "SELECT toUInt32(count()) AS n FROM logs WHERE startsWith(message, 'neighbour')",
      )
      expect(found?.n).toBe(51)
      const letters = await select<Record<string, unknown>>(
        `SELECT project_id, code, reason, replaceRegexpOne(text, '"received_at":"[^"]+"', '') AS text FROM dead_letters`,
      )
      expect(letters).toEqual([
        {
          project_id: 'demo',
          code: expect.stringMatching(/^CANNOT_|INCORRECT_/),
          reason: expect.any(String),
          // On a busy machine, a reader may have asked first: then the chunk was received later.
          text: rowAsJson(bad)?.replace(/"received_at":"[^"]+"/, ''),
        },
      ])
    })
    // Jobs are completed after their rows are stored.
    await eventually(async () => {
      expect(await drainQueue(installation.redisUrl, names, 0)).toSatisfy(isEmpty)
    })
  })

  it('is not dead-lettered if a materialized view rejects it after it was stored', async () => {
    await command(
      installation.clickhouse,
      `CREATE MATERIALIZED VIEW broken_view ENGINE = MergeTree ORDER BY () AS
        SELECT CAST(message, 'JSON') AS n FROM logs WHERE startsWith(message, '{view')`,
    )
    try {
      await add(blocksOf([row('view 1'), row('{view 2'), row('view 3')]))
      await eventually(async () => {
        expect(await drainQueue(installation.redisUrl, names, 0)).toSatisfy(isEmpty)
      })
    } finally {
      await command(installation.clickhouse, 'DROP VIEW broken_view')
    }
    expect(await select("SELECT message FROM logs WHERE message LIKE '%view _' ORDER BY message")).toEqual([
      { message: 'view 1' },
      { message: 'view 3' },
      { message: '{view 2' },
    ])
    expect(await select("SELECT text FROM dead_letters WHERE text LIKE '%{view%'")).toEqual([])
    expect(await count('sluice_view_failures_total')).toBe(1)
  })

  it('costs a fraction of an insert if it violates a constraint, however many there are', async () => {
    const before = await count('sluice_insert_duration_seconds_count')
    await command(
      installation.clickhouse,
      `ALTER TABLE logs ADD CONSTRAINT no_cats CHECK NOT startsWith(message, 'cat')`,
    )
    try {
      const rows = Array.from({ length: 1_000 }, (_, i) => row(i % 4 === 0 ? `cat ${i}` : `dog ${i}`))
      await add(blocksOf(rows))
      await eventually(async () => {
        expect(await drainQueue(installation.redisUrl, names, 0)).toSatisfy(isEmpty)
      })
    } finally {
      await command(installation.clickhouse, 'ALTER TABLE logs DROP CONSTRAINT no_cats')
    }
    const [stored] = await select<{ n: number }>(
      "SELECT toUInt32(count()) AS n FROM logs WHERE startsWith(message, 'dog')",
    )
    expect(stored?.n).toBe(750)
    const letters = await select<{ n: number; code: string }>(
      `SELECT code, toUInt32(count()) AS n FROM dead_letters
        WHERE JSONExtractString(text, 'message') LIKE 'cat %' AND reason LIKE '%no_cats%' GROUP BY code`,
    )
    expect(letters).toEqual([{ code: 'VIOLATED_CONSTRAINT', n: 250 }])
    await command(installation.clickhouse, "DELETE FROM dead_letters WHERE code = 'VIOLATED_CONSTRAINT'")
    expect((await count('sluice_insert_duration_seconds_count')) - before).toBeLessThan(20)
  })
})

async function sluice(...args: string[]): Promise<{ stdout: string; code: number }> {
  const { redisUrl, prefix } = installation
  const environment = {
    ...clickhouseEnvironment(installation.clickhouse),
    REDIS_URL: redisUrl,
    SLUICE_PREFIX: prefix,
  }
  const { stdout, code } = await runSluice(['dead-letters', ...args], environment)
  return { stdout, code }
}

async function ask(path: string, body?: object): Promise<Response> {
  const { queryUrl = '', readKey = '' } = installation
  return fetch(`${queryUrl}/v1/query/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${readKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

/** Waits until readers are told that everything received until now is complete. @returns up to when, in ms since 1970 */
async function completeNow(): Promise<number> {
  const nowMs = Date.now()
  return eventually(async () => {
    const { complete_until: until } = (await (await ask('logs')).json()) as { complete_until: string }
    expect(Date.parse(until)).toBeGreaterThan(nowMs)
    return Date.parse(until)
  })
}

/** When the first row was received whose message begins with a text, in ms since 1970. */
async function receivedMs(start: string): Promise<number> {
  const [found] = await select<{ ms: string }>(
    `SELECT toString(toUnixTimestamp64Milli(min(received_at))) AS ms FROM logs WHERE startsWith(message, '${start}')`,
  )
  return Number(found?.ms)
}

describe('sluice dead-letters', () => {
  it('lists dead letters, shows one, retries them and deletes them', async () => {
    const listed = await sluice('list', '--project', 'demo', '--json')
    const { id, text } = JSON.parse(listed.stdout) as { id: string; text: string }
    expect(JSON.parse((await sluice('show', id)).stdout)).toMatchObject({ id, text, projectId: 'demo' })

    expect(await sluice('retry', id)).toEqual({ stdout: '0 inserted, 1 rejected again.\n', code: 1 })
    // The cause of the rejection is fixed: here in the row itself, in practice in a table or a setting.
    await addLetter(text.replace('no uuid', randomUUIDv7()))
    const completeMs = await completeNow()
    const again = await sluice('retry', '--all')
    expect(again).toEqual({ stdout: '1 inserted, 1 rejected again.\n', code: 1 })
    expect(await select("SELECT message FROM logs WHERE message = 'bad one'")).toHaveLength(1)
    expect(await receivedMs('bad one')).toBeGreaterThan(completeMs)

    expect(await sluice('purge', '--all')).toEqual({ stdout: '', code: 1 })
    expect(await sluice('purge', '--all', '--yes')).toEqual({ stdout: '1 removed.\n', code: 0 })
    expect(await select('SELECT id FROM dead_letters')).toEqual([])
    expect((await sluice('purge')).code).toBe(2)
  })
})

describe('the explorer', () => {
  interface Letters {
    readonly total: number
    readonly groups: readonly { readonly code: string; readonly reason: string; readonly count: number }[]
    readonly retry: { readonly state: string; readonly inserted: number; readonly rejected: number } | null
  }

  const letters = async (): Promise<Letters> => (await (await ask('dead-letters')).json()) as Letters

  it('shows why rows were rejected, and never a row; a retry stores each of them once', async () => {
    const constraint = `CONSTRAINT no_dogs CHECK NOT startsWith(message, 'dogged')`
    await command(installation.clickhouse, `ALTER TABLE logs ADD ${constraint}`)
    try {
      await add(blocksOf(Array.from({ length: 30 }, (_, i) => row(`dogged secret ${i}`))))
      await eventually(async () => {
        expect((await letters()).groups).toMatchObject([
          { code: 'VIOLATED_CONSTRAINT', reason: 'Constraint `no_dogs`', count: 30 },
        ])
      })
      expect(JSON.stringify(await letters())).not.toMatch(/secret|dogged/)
      const choice = { code: 'VIOLATED_CONSTRAINT', reason: 'Constraint `no_dogs`' }
      expect((await ask('dead-letters/retry', choice)).status).toBe(202)
      await eventually(async () => {
        expect((await letters()).retry).toMatchObject({ state: 'done', inserted: 0, rejected: 30 })
      })
      await command(installation.clickhouse, 'ALTER TABLE logs DROP CONSTRAINT no_dogs')
      const completeMs = await completeNow()
      const statuses = await Promise.all(
        Array.from({ length: 5 }, async () => (await ask('dead-letters/retry', choice)).status),
      )
      expect(statuses).toEqual([202, 202, 202, 202, 202])
      await eventually(async () => {
        expect(await letters()).toMatchObject({
          total: 0,
          groups: [],
          retry: { state: 'done', inserted: 30 },
        })
      })
      expect(await receivedMs('dogged')).toBeGreaterThan(completeMs)
    } finally {
      await command(installation.clickhouse, 'ALTER TABLE logs DROP CONSTRAINT IF EXISTS no_dogs')
    }
    const [stored] = await select<{ n: number; ids: number }>(
      "SELECT toUInt32(count()) AS n, toUInt32(uniqExact(id)) AS ids FROM logs WHERE startsWith(message, 'dogged')",
    )
    expect(stored).toEqual({ n: 30, ids: 30 })
  })

  it('shows processes with what they do, and the shard', async () => {
    await eventually(async () => {
      const state = (await (await ask('pipeline')).json()) as Record<string, unknown>
      expect(state).toMatchObject({
        accepted: expect.any(Number) as number,
        backlog: 0,
        complete_until: expect.any(String) as string,
        shards: [
          {
            shard: 0,
            is_reachable: true,
            entries: 0,
            failed: 0,
            rates: { stored: expect.any(Number) as number },
          },
        ],
      })
      const processes = state['processes'] as { role: string; rates: Record<string, number> | null }[]
      expect(processes.map(({ role, rates }) => [role, Object.keys(rates ?? {})])).toEqual([
        ['api', ['accepted', 'rejected']],
        ['query', []],
        ['worker', ['stored', 'dead_lettered']],
      ])
    })
  })
})
