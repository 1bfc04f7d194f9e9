import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { accept, FakeApi, neverAnswer, problem } from '../../client/test/support/fake-api.ts'
import { ApplicationProcess } from './support/application-process.ts'

const target = '@sluice/pino-transport'
let api: FakeApi
let application: ApplicationProcess

beforeEach(async () => {
  api = new FakeApi()
  await api.start()
})
afterEach(async () => {
  await application.kill()
  await api.stop()
})

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)
/** The numbers of the lines that were stored. Requests may overtake each other. */
const stored = (): number[] =>
  api.storedMessages.map((message) => Number(String(message).slice('m-'.length))).toSorted((a, b) => a - b)

function start(changes: object = {}, transport: object = {}, pino: object = {}): void {
  const options = { url: api.url, apiKey: 'slk_test', flushIntervalMs: 20, ...changes }
  application = new ApplicationProcess({ transport: { target, options, ...transport }, pino })
}

describe('the configuration of the logger', () => {
  it('reaches the transport: levels, keys, name', async () => {
    const keys = { messageKey: 'text', errorKey: 'problem', customLevels: { success: 35 } }
    start({}, {}, { name: 'shop', ...keys })
    await application.ask({ act: 'fields', level: 'success', fields: { order: 7 }, message: 'paid' })
    await application.ask({ act: 'error', message: 'no' })
    expect(await application.end({ act: 'end' })).toMatchObject({ code: 0 })
    expect(api.received.flatMap(({ logs }) => logs)).toMatchObject([
      { level: 'success', message: 'paid', service: 'shop', metadata: { order: 7 } },
      {
        level: 'error',
        message: 'no',
        stack: expect.stringMatching(/^TypeError: no\n {4}at /) as string,
        metadata: { problem: { type: 'TypeError', message: 'no' } },
      },
    ])
    expect(application.stderr).toBe('')
  })

  it('comes from options if pino does not pass it on', async () => {
    const options = { url: api.url, apiKey: 'slk_test', messageKey: 'text', customLevels: { success: 35 } }
    application = new ApplicationProcess({
      transport: { targets: [{ target: 'pino/file' }, { target, options }], levels: { success: 35 } },
      pino: { messageKey: 'text', customLevels: { success: 35 } },
    })
    await application.ask({ act: 'fields', level: 'success', fields: {}, message: 'paid' })
    await application.end({ act: 'end' })
    expect(api.received.flatMap(({ logs }) => logs)).toMatchObject([{ level: 'success', message: 'paid' }])
  })

  it('that is incomplete ends the application with a message', async () => {
    application = new ApplicationProcess({ transport: { target } })
    expect(await application.exited).toMatchObject({ code: 1 })
    expect(application.stderr).toContain('set `options.url` or SLUICE_API_URL')
  })
})

describe('at its end, the application sends what it has logged', () => {
  it.each([
    [{ act: 'exit', code: 3 } as const, 3],
    [{ act: 'throw' } as const, 1],
  ])('by %j', async (command, code) => {
    start()
    await application.ask({ act: 'log', from: 0, to: 1_234 })
    expect(await application.end(command)).toMatchObject({ code })
    expect(stored()).toEqual(numbers(0, 1_234))
  })

  it('in the first moment, before the thread has started', async () => {
    start()
    application.ask({ act: 'log', from: 0, to: 5 }).catch(() => undefined)
    await application.end({ act: 'exit', code: 0 })
    expect(stored()).toEqual(numbers(0, 5))
  })

  it('but ends in time if the API does not respond', async () => {
    api.responder = neverAnswer
    start({ flushTimeoutMs: 500 })
    await application.ask({ act: 'log', from: 0, to: 150 })
    const { code, tookMs } = await application.end({ act: 'end' })
    expect(code).toBe(0)
    expect(tookMs).toBeGreaterThan(450)
    expect(tookMs).toBeLessThan(5_000)
    expect(application.stderr).toContain('log entries were dropped: the application ended before')
  })
})

it('`flush` of the logger waits until the API has accepted the lines', async () => {
  const environment = { SLUICE_API_URL: api.url, SLUICE_API_KEY: 'slk_env' }
  const options = { flushIntervalMs: 3_600_000 }
  application = new ApplicationProcess({ transport: { target, options } }, environment)
  await application.ask({ act: 'log', from: 0, to: 50 })
  expect(api.received).toEqual([])
  await application.ask({ act: 'flush' })
  expect(stored()).toEqual(numbers(0, 50))
  expect(api.received[0]?.headers.authorization).toBe('Bearer slk_env')
  await application.end({ act: 'end' })
})

it('`flush` ends without an error if the API is unavailable, and logging continues', async () => {
  api.responder = problem(503, 'not_ready')
  start({ flushTimeoutMs: 200 })
  await application.ask({ act: 'log', from: 0, to: 1 })
  await application.ask({ act: 'flush' })
  api.responder = accept
  await application.ask({ act: 'log', from: 1, to: 2 })
  await expect.poll(() => stored()).toEqual(numbers(0, 2))
  await application.end({ act: 'end' })
})

it.each([
  ['short lines', 0, 5_000],
  // 100 of them are more than a batch.
  ['long lines', 5_000, 2_000],
])(
  'with `wait` and `sync`, stores or reports each of %s although it logs faster than the API accepts',
  async (_name, pad, to) => {
    start({ whenFull: 'wait', queueEntriesMax: 500, queueBytesMax: 1_400_000 }, { sync: true })
    await application.ask({ act: 'log', from: 0, to, pad })
    await application.end({ act: 'end' })
    // It only waits for an API that accepts 1 MB per second, which this one may not do on a busy machine.
    const reports = application.stderr.matchAll(/: (\d+) log entr(?:y was|ies were) dropped/g)
    const reported = [...reports].reduce((sum, [, entries]) => sum + Number(entries), 0)
    expect(new Set(stored()).size + reported).toBe(to)
    expect(stored().length).toBeGreaterThan(500)
  },
)

it('with `wait`, entries that are larger than a batch are not dropped', async () => {
  start({ whenFull: 'wait', requestsInFlightMax: 1, queueBytesMax: 700_000 }, { sync: true })
  // JSON needs six bytes for each of these characters.
  const command = { act: 'fields', level: 'info', fields: {}, message: '\u0001'.repeat(60_000) } as const
  await Promise.all(Array.from({ length: 8 }, () => application.ask(command)))
  await application.end({ act: 'end' })
  expect(api.storedMessages).toHaveLength(8)
  expect(application.stderr).toBe('')
})
