import { type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { ApplicationProcess } from './support/application-process.ts'

/** From the start of the API until rows can be read, with the waits between attempts. */
const STORED_WITHIN_MS = 30_000
/** A test starts the API and two applications, on a machine that may be busy. */
const TEST_MS = 90_000

let installation: Installation
let clickhouse: ClickHouseClient
const started: ApplicationProcess[] = []
const folder = mkdtempSync(join(tmpdir(), 'pino-'))

beforeAll(async () => {
  installation = await startTestInstallation()
  clickhouse = connectClickHouse(installation.clickhouse, { requestTimeoutMs: 5_000, connectionsMax: 2 })
})
afterEach(async () => {
  await Promise.all(started.splice(0).map((each) => each.kill()))
})
afterAll(async () => {
  await clickhouse?.close()
  await installation?.stop()
  rmSync(folder, { recursive: true })
})

function start(name: string, options: object = {}): ApplicationProcess {
  const all = { url: installation.apiUrl, apiKey: installation.apiKey, ...options }
  const application = new ApplicationProcess({
    pino: { name },
    transport: { target: '@sluice/pino-transport', options: all },
  })
  started.push(application)
  return application
}

async function counts(service: string): Promise<{ rows: number; distinct: number }> {
  const result = await clickhouse.query({
    query: `SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(message)) AS distinct FROM logs
      WHERE service = {service: String}`,
    query_params: { service },
    format: 'JSONEachRow',
  })
  const [row] = await result.json<{ rows: number; distinct: number }>()
  return row ?? { rows: 0, distinct: 0 }
}

it('stores every line of a program that ends', { timeout: TEST_MS }, async () => {
  const application = start('ends')
  await application.ask({ act: 'log', from: 0, to: 5_000 })
  expect(await application.end({ act: 'end' })).toMatchObject({ code: 0 })
  await expect
    .poll(() => counts('ends'), { timeout: STORED_WITHIN_MS })
    .toEqual({ rows: 5_000, distinct: 5_000 })
  expect(application.stderr).toBe('')
})

it(
  'stores every line once if the API is killed in between, and starts again',
  { timeout: TEST_MS },
  async () => {
    const { api } = installation.processes
    const application = start('restarted')
    await application.ask({ act: 'log', from: 0, to: 1_000 })
    const log = application.ask({ act: 'log', from: 1_000, to: 5_000, turns: 10 })
    await api.stop({ signal: 'SIGKILL' })
    await log
    await application.ask({ act: 'log', from: 5_000, to: 6_000 })
    await api.start()
    await expect
      .poll(() => counts('restarted'), { timeout: STORED_WITHIN_MS })
      .toEqual({ rows: 6_000, distinct: 6_000 })
    await application.end({ act: 'end' })
    await expect
      .poll(() => counts('restarted'), { timeout: STORED_WITHIN_MS })
      .toEqual({ rows: 6_000, distinct: 6_000 })
  },
)

it(
  'with a spool, a program that is killed while the API is down loses nothing',
  { timeout: TEST_MS },
  async () => {
    const { api } = installation.processes
    const spool = { directory: folder }
    const first = start('killed', { spool, flushTimeoutMs: 1_000 })
    await first.ask({ act: 'log', from: 0, to: 500 })
    await first.ask({ act: 'flush' })
    await api.stop({ signal: 'SIGKILL' })
    await first.ask({ act: 'log', from: 500, to: 1_500 })
    // Afterwards the thread has read all lines, and the spool has them.
    await first.ask({ act: 'flush' })
    await first.kill()
    await api.start()
    const second = start('killed', { spool })
    await expect
      .poll(() => counts('killed'), { timeout: STORED_WITHIN_MS })
      .toEqual({ rows: 1_500, distinct: 1_500 })
    await second.end({ act: 'end' })
  },
)
