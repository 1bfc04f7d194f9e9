import { connectClickHouse, connectRedis, type ClickHouseClient } from '@sluice/runtime'
import { startStack, type Stack } from '@sluice/local'
import {
  chunkJobName,
  encodeChunk,
  logsInsertJsonQuery,
  logsInsertSettings,
  redisNames,
  rowAsJson,
  shapeRow,
  startRows,
  type Chunk,
} from '@sluice/schema'
import { Queue } from 'bullmq'
import { execFile } from 'node:child_process'
import { randomUUIDv7 } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from './support.ts'
import { startTestServices } from './test-services.ts'

let stack: Stack
let clickhouse: ClickHouseClient
let queue: Queue<Chunk>

beforeAll(async () => {
  stack = await startStack({ services: await startTestServices() })
  clickhouse = connectClickHouse(stack.clickhouse, { requestTimeoutMs: 5_000, connectionsMax: 4 })
  const names = redisNames(stack.prefix)
  queue = new Queue<Chunk>(names.queue, {
    connection: connectRedis(stack.redisUrl, { failFast: false }),
    prefix: names.queuePrefix,
  })
})

afterAll(async () => {
  await queue?.close()
  await clickhouse?.close()
  await stack?.stop()
})

async function select<Row>(query: string): Promise<Row[]> {
  return (await clickhouse.query({ query, format: 'JSONEachRow' })).json<Row>()
}

function row(message: string, id: string = randomUUIDv7()): string {
  const start = startRows({ projectId: 'demo', retentionDays: 30, receivedAtMs: Date.now() })
  const shaped = shapeRow({ level: 'info', message }, id, start, false)
  if ('error' in shaped) throw new Error(shaped.error.message)
  return shaped.row
}

async function add(
  rows: readonly string[],
  change: (chunk: Chunk) => Chunk = (chunk) => chunk,
): Promise<void> {
  await queue.add(chunkJobName, change(encodeChunk(rows.length, Buffer.from(rows.join('')))), {
    jobId: randomUUIDv7(),
    removeOnComplete: true,
  })
}

describe('a row that ClickHouse refuses', () => {
  it('ends as a dead letter with its reason and text, and its neighbours go in', async () => {
    const bad = row('bad one', 'no uuid')
    const good = Array.from({ length: 50 }, (_, i) => row(`neighbour ${i}`))
    await add([...good.slice(0, 20), bad, ...good.slice(20)])
    await add([row('neighbour of another chunk')])
    await eventually(15_000, async () => {
      const [found] = await select<{ n: number }>(
        "SELECT toUInt32(count()) AS n FROM logs WHERE startsWith(message, 'neighbour')",
      )
      expect(found?.n).toBe(51)
      const letters = await select<Record<string, unknown>>(
        'SELECT project_id, code, reason, text FROM dead_letters',
      )
      expect(letters).toEqual([
        {
          project_id: 'demo',
          code: expect.stringMatching(/^CANNOT_|INCORRECT_/),
          reason: expect.any(String),
          text: rowAsJson(bad),
        },
      ])
    })
    // The jobs are completed after the rows are there.
    await eventually(5_000, async () => {
      expect(await queue.getJobCounts('wait', 'active', 'failed')).toEqual({ wait: 0, active: 0, failed: 0 })
    })
  }, 30_000)

  it('ends as one dead letter when it is the frame that cannot be read', async () => {
    const frame = Buffer.from('this is no zstd frame').toString('base64')
    await add([row('x')], (chunk) => ({ ...chunk, frame }))
    await eventually(15_000, async () => {
      const letters = await select("SELECT text FROM dead_letters WHERE code = 'UNREADABLE_CHUNK'")
      expect(letters).toEqual([{ text: frame }])
    })
  }, 30_000)
})

/** Runs the command as a person would. */
async function sluice(...args: string[]): Promise<{ stdout: string; code: number }> {
  const program = fileURLToPath(new URL('../apps/cli/src/main.ts', import.meta.url))
  const { url, username, password, database } = stack.clickhouse
  const environment = {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USERNAME: username,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: database,
  }
  return new Promise((resolve) => {
    execFile(process.execPath, [program, 'dead-letters', ...args], { env: environment }, (error, stdout) =>
      resolve({ stdout, code: error === null ? 0 : Number(error.code) }),
    )
  })
}

describe('sluice dead-letters', () => {
  it('lists them, shows one, tries them again and removes them', async () => {
    const listed = await sluice('list', '--project', 'demo', '--json')
    const { id, text } = JSON.parse(listed.stdout) as { id: string; text: string }
    expect(JSON.parse((await sluice('show', id)).stdout)).toMatchObject({ id, text, projectId: 'demo' })

    expect(await sluice('retry', id)).toEqual({ stdout: '0 inserted, 1 refused again.\n', code: 1 })
    // What made ClickHouse refuse it is mended: here the text itself, in practice a table or a setting.
    const mended = text.replace('no uuid', randomUUIDv7())
    const values = [
      {
        id: randomUUIDv7(),
        project_id: 'demo',
        failed_at: '2026-11-20 00:00:00',
        code: 'X',
        reason: '',
        text: mended,
      },
    ]
    await clickhouse.insert({ table: 'dead_letters', values, format: 'JSONEachRow' })
    const again = await sluice('retry', '--all')
    expect(again).toEqual({ stdout: '1 inserted, 2 refused again.\n', code: 1 })
    expect(await select("SELECT message FROM logs WHERE message = 'bad one'")).toHaveLength(1)

    expect(await sluice('purge', '--all')).toEqual({ stdout: '2 removed.\n', code: 0 })
    expect(await select('SELECT id FROM dead_letters')).toEqual([])
    expect((await sluice('purge')).code).toBe(2)
  }, 60_000)

  it('brings in a row whose token ClickHouse has without the row', async () => {
    const id = randomUUIDv7()
    const text = rowAsJson(row('kept out by its token')) ?? ''
    await clickhouse.insert({
      table: 'dead_letters',
      values: [{ id, project_id: 'demo', failed_at: '2026-11-20 00:00:00', code: 'X', reason: '', text }],
      format: 'JSONEachRow',
    })
    // Where ClickHouse was killed between the two, it has the token of an insert and not its rows: as here.
    await clickhouse.command({
      query: `${logsInsertJsonQuery}\n${rowAsJson(row('another'))}`,
      clickhouse_settings: { ...logsInsertSettings, insert_deduplication_token: `dead-letter/${id}` },
    })
    expect(await sluice('retry', id)).toEqual({ stdout: '1 inserted, 0 refused again.\n', code: 0 })
    expect(await select("SELECT message FROM logs WHERE message = 'kept out by its token'")).toHaveLength(1)
    expect(await select('SELECT id FROM dead_letters')).toEqual([])
  }, 60_000)
})
