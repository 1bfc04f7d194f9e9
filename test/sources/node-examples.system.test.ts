import { type ClickHouseClient, connectClickHouse } from '@sluice/clickhouse'
import { eventually } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'

const run = promisify(execFile)
/** An example ends within a second, unless it cannot send. */
const EXAMPLE_MS = 20_000

let installation: Installation
let clickhouse: ClickHouseClient

beforeAll(async () => {
  installation = await startTestInstallation()
  clickhouse = connectClickHouse(installation.clickhouse, { requestTimeoutMs: 5_000, connectionsMax: 2 })
})

afterAll(async () => {
  await clickhouse?.close()
  await installation?.stop()
})

interface Row {
  readonly id: string
  readonly message: string
  readonly metadata: Record<string, unknown>
}

const known = new Set<string>()

/** Runs an example. @returns what it printed, and the rows that it added, in the order of their messages */
async function runExample(
  folder: string,
  rows: number,
  options: readonly string[] = [],
): Promise<{ printed: string; stored: Row[] }> {
  const cwd = fileURLToPath(new URL(`../../examples/${folder}`, import.meta.url))
  const env = {
    PATH: process.env['PATH'],
    SLUICE_API_URL: installation.apiUrl,
    SLUICE_API_KEY: installation.apiKey,
  }
  const { stdout, stderr } = await run(process.execPath, [...options, 'main.js'], {
    cwd,
    env,
    timeout: EXAMPLE_MS,
  })
  const stored = await eventually(async () => {
    const added = await newRows()
    expect(added.length).toBeGreaterThanOrEqual(rows)
    return added
  })
  for (const { id } of stored) known.add(id)
  return { printed: stdout + stderr, stored }
}

async function newRows(): Promise<Row[]> {
  const query = `
    SELECT id, level, message, service, environment, source, stack, metadata_text FROM logs ORDER BY message`
  const result = await clickhouse.query({ query, format: 'JSONEachRow' })
  const all = await result.json<Row & { metadata_text: string }>()
  const added: Row[] = []
  for (const { metadata_text: text, ...row } of all)
    if (!known.has(row.id)) added.push({ ...row, metadata: JSON.parse(text) as Row['metadata'] })
  return added
}

const common = { service: 'checkout', environment: 'production', source: 'server' }
const stack = expect.stringMatching(/^SyntaxError: .+\n {4}at /) as string

it('examples/pino', async () => {
  const { printed, stored } = await runExample('pino', 4)
  expect(stored).toHaveLength(4)
  expect(stored).toMatchObject([
    {
      ...common,
      level: 'error',
      message: 'Answer of the bank is invalid',
      stack,
      metadata: { err: { type: 'SyntaxError' } },
    },
    { ...common, level: 'debug', message: 'Connecting', metadata: { requestId: 'r-1' } },
    { ...common, level: 'info', message: 'Order accepted', metadata: { order: { id: 4711, total: 12.5 } } },
    { ...common, level: 'success', message: 'Payment received' },
  ])
  expect(printed).toContain('"msg":"Order accepted"')
})

it('examples/winston', async () => {
  const { printed, stored } = await runExample('winston', 4)
  expect(stored).toHaveLength(4)
  expect(stored).toMatchObject([
    { ...common, level: 'debug', message: 'Connecting', metadata: { requestId: 'r-1' } },
    { ...common, level: 'error', message: expect.stringContaining('JSON') as string, stack },
    { ...common, level: 'info', message: 'Order accepted', metadata: { order: { id: 4711, total: 12.5 } } },
    { ...common, level: 'debug', message: 'POST /orders', metadata: { originalLevel: 'http' } },
  ])
  expect(printed).toContain('Order accepted')
})

it('examples/console', async () => {
  const { printed, stored } = await runExample('console', 3)
  expect(stored).toHaveLength(3)
  expect(stored).toMatchObject([
    {
      ...common,
      level: 'log',
      message: 'Order 4711 accepted { total: 12.5 }',
      metadata: { values: [{ total: 12.5 }] },
    },
    {
      ...common,
      level: 'error',
      message: expect.stringMatching(/^Payment failed: SyntaxError: [^\n]+$/) as string,
      stack,
      metadata: { error: { name: 'SyntaxError' } },
    },
    { ...common, level: 'warn', message: 'Slow answer', metadata: {} },
  ])
  expect(printed).toContain('Order 4711 accepted { total: 12.5 }\nSlow answer')
})

it('examples/otel-pino', async () => {
  const { printed, stored } = await runExample('otel-pino', 3, ['--import', './instrumentation.js'])
  const resource = { service: 'checkout', environment: 'production' }
  expect(stored).toHaveLength(3)
  expect(stored).toMatchObject([
    {
      ...resource,
      level: 'error',
      message: 'Answer of the bank is invalid',
      stack,
      metadata: { attributes: { 'exception.type': 'SyntaxError' } },
    },
    { ...resource, level: 'debug', message: 'Connecting', metadata: { attributes: { requestId: 'r-1' } } },
    {
      ...resource,
      level: 'info',
      message: 'Order accepted',
      metadata: { attributes: { order: { id: 4711, total: 12.5 } } },
    },
  ])
  expect(printed).toContain('"msg":"Order accepted"')
})
