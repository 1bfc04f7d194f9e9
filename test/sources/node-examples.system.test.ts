import { eventually } from '@sluice/harness'
import { expect, it } from 'vitest'
import { examplePath, runProgram } from './programs.ts'
import { Sources, type StoredEntry } from './sources.ts'

const sources = Sources.use()
const common = { service: 'checkout', environment: 'production', source: 'server' }
const stack = expect.stringMatching(/^SyntaxError: .+\n {4}at /) as string
const known = new Set<string>()

/** Runs an example, and waits for its entries. @returns them in the order of their messages */
async function runExample(
  folder: string,
  entries: number,
  options: readonly string[] = [],
): Promise<StoredEntry[]> {
  const command = [process.execPath, ...options, 'main.js'] as const
  const { code, output: printed } = await runProgram(command, sources.environment(common.service), {
    cwd: examplePath(folder),
  })
  expect({ code, printed }).toMatchObject({ code: 0 })
  const stored = await eventually(async () => {
    const added = (await sources.storedOf(common.service)).filter(({ id }) => !known.has(id))
    expect(added.length).toBeGreaterThanOrEqual(entries)
    return added
  })
  for (const { id } of stored) known.add(id)
  return stored.toSorted((a, b) => (a.message < b.message ? -1 : 1))
}

it('examples/pino', async () => {
  const stored = await runExample('pino', 4)
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
})

it('examples/winston', async () => {
  const stored = await runExample('winston', 4)
  expect(stored).toMatchObject([
    { ...common, level: 'debug', message: 'Connecting', metadata: { requestId: 'r-1' } },
    { ...common, level: 'error', message: expect.stringContaining('JSON') as string, stack },
    { ...common, level: 'info', message: 'Order accepted', metadata: { order: { id: 4711, total: 12.5 } } },
    { ...common, level: 'debug', message: 'POST /orders', metadata: { originalLevel: 'http' } },
  ])
})

it('examples/console', async () => {
  const stored = await runExample('console', 3)
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
})

it('examples/otel-pino', async () => {
  const stored = await runExample('otel-pino', 3, ['--import', './instrumentation.js'])
  const resource = { service: 'checkout', environment: 'production' }
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
})
