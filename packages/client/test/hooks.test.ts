import { beforeEach, describe, expect, test, vi } from 'vitest'
import { SluiceClient } from '../src/index.ts'
import { raise } from './support/raise.ts'
import { fakeClient, sending } from './support/fake-client.ts'
import { pass, problemOf } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers())

const full = { requestsInFlightMax: 1, batchEntriesMax: 1, queueEntriesMax: 2 } as const

const rejectLater: (...values: unknown[]) => unknown = () => Promise.reject(new Error('hook'))

describe('a hook that throws', () => {
  test('never reaches the application, and is reported once', async () => {
    const throwing = { onDropped: raise, onSettled: raise, onRejected: raise, onRetry: raise }
    const { client, api, reported, log } = await sending(1, { ...full, ...throwing })
    log(3)
    client.send({ level: 'fatal' as 'error', message: '' })
    api.last.respond(503)
    await pass(1_000)
    await api.accept()
    await api.accept()
    expect(client.stats).toMatchObject({ accepted: 2, dropped: 2, rejected: 1 })
    expect(reported.errors).toMatchObject([
      { kind: 'hook', message: 'onSettled threw. Further exceptions of hooks are not reported.' },
    ])
  })

  test('is survived if it is onError', async () => {
    const { client, api } = await sending(1, { onError: raise, onDropped: raise })
    await api.respond(401, problemOf('unauthorized'))
    expect(client.stats.queuedEntries).toBe(1)
  })

  test('asynchronously does not end the process', async () => {
    const { reported, send } = await sending(1, { ...full, onDropped: rejectLater })
    await send(2)
    expect(reported.errors).toMatchObject([{ kind: 'hook' }])
  })
})

test('a hook that logs does not call itself forever', async () => {
  let calls = 0
  const onDropped = (): void => {
    calls += 1
    if (calls < 1_000) client.error('dropped')
  }
  const { client, log } = await sending(1, { ...full, onDropped })
  log(2)
  expect(calls).toBe(1)
  expect(client.stats).toMatchObject({ dropped: 2, queuedEntries: 2 })
})

test('a hook may close the client, and others are called meanwhile', async () => {
  const { client, api, reported, send } = fakeClient({
    onError: () => void client.close({ remaining: 'give-up' }),
  })
  await send(2, 1_000)
  await api.respond(401, problemOf('unauthorized'))
  expect(reported.drops).toEqual([{ messages: ['1', '2'], reason: 'closed' }])
})

test('without onError, a problem is printed once', async () => {
  const print = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const client = new SluiceClient({
    url: 'https://logs.example.com',
    apiKey: 'slk_secret',
    flushOnExit: false,
    fetch: async () => Response.json(problemOf('unauthorized'), { status: 401 }),
  })
  client.info('a')
  await pass(200_000)
  expect(print.mock.calls).toEqual([
    [
      '@sluice/client: https://logs.example.com/v1/logs rejects all requests: the API key is missing, malformed, unknown, expired or revoked (401)',
    ],
  ])
})

test('an entry that is rejected here is reported as it was passed, with its tag', () => {
  const { client, reported } = fakeClient()
  const entry = { level: 'info', message: 'x'.repeat(65_537) } as const
  client.send(entry, 'tag')
  client.info('m', { huge: 'x'.repeat(70_000) })
  client.sendJson(`{"level":"info","message":"${'x'.repeat(5 * 1024 * 1024)}"}`, 'json')
  client.sendJson('')
  client.sendJson(' \n', 'blank')
  expect(reported.rejections).toMatchObject([
    { entry, tag: 'tag', error: { path: '/message', code: 'too_long' } },
    { entry: { level: 'info', message: 'm' }, error: { path: '/metadata', code: 'too_large' } },
    { tag: 'json', error: { path: '', code: 'too_large' } },
    { entry: '', error: { code: 'invalid_json' } },
    { entry: ' \n', error: { code: 'invalid_json' }, tag: 'blank' },
  ])
  expect(client.stats).toMatchObject({ rejected: 5, queuedEntries: 0 })
})

/** The only entry that is sent. */
async function sentBy(log: (client: SluiceClient) => void): Promise<string> {
  const { client, api, reported } = fakeClient()
  log(client)
  api.isAccepting = true
  await pass(1_000)
  expect(reported).toMatchObject({ rejections: [], settlements: [{ accepted: 1 }] })
  return reported.settlements[0]?.entries[0]?.json ?? ''
}

/** Like an error of Axios: the request has its sockets, and the message is what counts. */
function httpError(): Error {
  const socket: Record<string, unknown> = { buffer: 'é'.repeat(40_000) }
  const request = { socket, headers: { authorization: 'Bearer secret' } }
  socket['request'] = request
  const error = new Error('Request failed with status code 500', { cause: new Error('aborted') })
  return Object.assign(error, { code: 'ERR_BAD_RESPONSE', config: { request }, request })
}
describe('an error with properties that are too large, such as errors of HTTP clients', () => {
  const reduced = {
    name: 'Error',
    message: 'Request failed with status code 500',
    code: 'ERR_BAD_RESPONSE',
    cause: { name: 'Error', message: 'aborted', stack: expect.stringContaining('aborted') as string },
  }

  test.each<[string, (client: SluiceClient) => void, object]>([
    [
      'as a field',
      (client) => client.error('payment failed', { error: httpError(), order: 7 }),
      { error: reduced, order: 7 },
    ],
    ['as the message', (client) => client.error(httpError()), { error: reduced }],
    [
      'in an object',
      (client) => client.send({ level: 'error', message: 'm', metadata: { a: { error: httpError() } } }),
      { a: { error: { ...reduced, stack: expect.stringContaining('500') as string } } },
    ],
  ])('is sent without them: %s', async (_name, log, metadata) => {
    const json = await sentBy(log)
    expect(JSON.parse(json)).toMatchObject({ metadata })
    expect(json).not.toContain('secret')
  })

  test('keeps them if they are within the limits', async () => {
    const error = Object.assign(new Error('a'), { config: { url: '/pay' } })
    const json = await sentBy((client) => client.error('m', { error }))
    expect(JSON.parse(json)).toMatchObject({ metadata: { error: { config: { url: '/pay' } } } })
  })

  test('does not save an entry whose other fields are too large', () => {
    const { client, reported } = fakeClient()
    client.error('m', { error: httpError(), huge: 'x'.repeat(70_000) })
    expect(reported.rejections).toMatchObject([{ error: { path: '/metadata', code: 'too_large' } }])
  })
})

test('without `onRejected`, the first rejected entry is reported to `onError`, without its content', async () => {
  const { client, api, reported, send } = fakeClient({ onRejected: undefined })
  client.info('m', { huge: 'secret'.repeat(20_000) })
  await send(1, 1_000)
  await api.respond(400, problemOf('invalid_json'))
  expect(client.stats.rejected).toBe(2)
  expect(reported.errors).toMatchObject([
    { kind: 'rejection', message: expect.stringContaining('too_large in /metadata') as string },
  ])
  expect(reported.errors[0]?.message).not.toContain('secret')
})
