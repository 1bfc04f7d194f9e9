import { afterAll, expect, test, vi } from 'vitest'
import { type RowFields, type TestQuery, useQueryTests } from '../../../query/test/support/test-query.ts'
import { run } from '../../src/run.ts'
import { fakeContext } from '../fake-context.ts'
import { jsonLines } from '../installation.ts'

const { store, open } = await useQueryTests()
const api = await open({}, afterAll)

/** A project, how to store entries of it, and a context with a key that can read it. */
function projectOf(query: TestQuery) {
  const { projectId, key } = query.addProject()
  const add = async (...rows: Omit<RowFields, 'projectId'>[]): Promise<void> => {
    await store(rows.map((row) => Object.assign({ projectId }, row)))
    query.completeMs = Date.now()
  }
  return {
    add,
    context: () => fakeContext({ environment: { SLUICE_QUERY_URL: query.url, SLUICE_READ_KEY: key } }),
  }
}

async function output(context: ReturnType<typeof fakeContext>, ...args: string[]): Promise<string> {
  expect({ code: await run(args, context), stderr: context.written.stderr }).toEqual({ code: 0, stderr: '' })
  return context.written.stdout
}

test('logs finds entries by the query language, with metadata as it was sent, of the project of the key only', async () => {
  const { add, context } = projectOf(api)
  await projectOf(api).add({ message: 'of another project' })
  await add(
    {
      message: 'one',
      level: 'error',
      service: 'web',
      metadata: '{"user":{"id":123456789012345678901234567890},"price":1.50}',
    },
    { message: 'two', level: 'warn', service: 'web' },
    { message: 'three', level: 'error', service: 'shop', timestamp: '2026-01-01T00:00:00Z' },
  )
  const messages = async (...args: string[]) =>
    jsonLines(await output(context(), 'logs', '--json', ...args)).map(({ message }) => message)
  expect(await messages('--from', '2025-12-31', 'level:error')).toEqual(['three', 'one'])
  expect(await messages('NOT level:warn', 'service:web')).toEqual(['one'])
  const fields = ['user.id:*', '--fields', 'user.id,price']
  expect(await output(context(), 'logs', ...fields)).toBe('123456789012345678901234567890\t1.50\n')
  expect(await output(context(), 'logs', '--json', ...fields)).toBe(
    '{"user.id":123456789012345678901234567890,"price":1.50}\n',
  )
})

test('logs shows the place of an error in the query', async () => {
  const { context } = projectOf(api)
  const used = context()
  expect(await run(['logs', 'level:error', '(timeout'], used)).toBe(2)
  expect(used.written.stderr).toMatch(/cannot be parsed:\n {2}level:error \(timeout\n {14}\^ Expected a \)/)
})

test('logs --id shows the entries around one, and count agrees with them', async () => {
  const { add, context } = projectOf(api)
  await add(
    ...[1, 2, 3, 4, 5].map((second) => ({
      message: `m${second}`,
      timestamp: `2026-01-01T00:00:0${second}.000000Z`,
      service: 'web',
    })),
  )
  const range = ['--from', '2026-01-01', '--until', '2026-01-01T00:01', '--timezone', 'UTC']
  const [third] = jsonLines(await output(context(), 'logs', '--json', ...range, 'm3'))
  const around = jsonLines(
    await output(context(), 'logs', '--json', '--id', String(third?.['id']), '--context', '1'),
  )
  expect(around.map(({ message }) => message)).toEqual(['m2', 'm3', 'm4'])
  const counted = await output(context(), 'logs', 'count', '--by', 'service', '--per', '1m', ...range)
  expect(counted).toBe(
    'TIME                      web\n2026-01-01T00:00:00.000Z  5\ntotal                     5\n',
  )
})

test('logs --follow prints each entry once, through a restart of the query API', async () => {
  const first = await open()
  const { add, context } = projectOf(first)
  await add({ message: 'before' })
  const used = context()
  const running = run(['logs', '--follow', '--json', 'NOT level:debug'], used)
  const prints = (...expected: string[]) =>
    vi.waitFor(() => expect(jsonLines(used.written.stdout).map(({ message }) => message)).toEqual(expected))
  await prints('before')
  await add({ message: 'new' }, { message: 'not requested', level: 'debug' })
  await prints('before', 'new')

  await first.close()
  await add({ message: 'meanwhile', timestamp: '2001-01-01T00:00:00Z' })
  const second = await open({ registry: first.registry, port: Number(new URL(first.url).port) })
  second.completeMs = first.completeMs
  await prints('before', 'new', 'meanwhile')
  used.interrupt()
  expect(await running).toBe(130)
  await prints('before', 'new', 'meanwhile')
  // The tail ends with its viewer.
  await vi.waitFor(() => expect(second.tails.viewers).toBe(0))
})
