import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { SluiceClient } from '../src/index.ts'
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
    expect(reported.errors).toMatchObject([{ kind: 'hook' }])
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
  const onDropped = vi.fn<() => void>(() => fake.client.error('dropped'))
  const fake = await sending(1, { ...full, onDropped })
  fake.log(2)
  expect(onDropped).toHaveBeenCalledTimes(1)
  expect(fake.client.stats).toMatchObject({ dropped: 2, queuedEntries: 2 })
})

test('without onError, a problem is printed once', async () => {
  const print = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const { api } = await sending(1, { onError: undefined })
  for (let i = 0; i < 3; i += 1) {
    api.last.respond(401, problemOf('unauthorized'))
    await pass(60_000)
  }
  expect(print.mock.calls).toEqual([
    [expect.stringMatching(/^@sluice\/client: .* the API key is .*\(401\)$/)],
  ])
})

test('an entry that is rejected here is reported as it was passed, with its tag', () => {
  const { client, reported } = fakeClient()
  const entry = { level: 'info', message: 'x'.repeat(65_537) } as const
  client.send(entry, 'tag')
  client.info('m', { huge: 'x'.repeat(70_000) })
  client.send({ level: 'info', message: 'm', metadata: 'string' as never })
  client.sendJson(`{"level":"info","message":"${'x'.repeat(5 * 1024 * 1024)}"}`, 'json')
  client.sendJson(' \n', 'blank')
  expect(reported.rejections).toMatchObject([
    { entry, tag: 'tag', error: { path: '/message', code: 'too_long' } },
    { entry: { level: 'info', message: 'm' }, error: { path: '/metadata', code: 'too_large' } },
    { error: { path: '/metadata', code: 'wrong_type' } },
    { tag: 'json', error: { path: '', code: 'too_large' } },
    { entry: ' \n', error: { code: 'invalid_json' }, tag: 'blank' },
  ])
  expect(client.stats).toMatchObject({ rejected: 5, queuedEntries: 0 })
})

test('without `onRejected`, the first rejected entry is reported to `onError`, without its content', async () => {
  const { client, api, reported, send } = fakeClient({ onRejected: undefined })
  client.info('m', { huge: 'secret'.repeat(20_000) })
  await send(1, 1_000)
  await api.respond(400, problemOf('invalid_json'))
  expect(client.stats.rejected).toBe(2)
  expect(reported.errors).toMatchObject([{ kind: 'rejection', reason: 'too_large in /metadata' }])
  expect(reported.errors[0]?.message).not.toContain('secret')
})

test('an entry has the time, the defaults, the context and the fields, in this order of precedence', async () => {
  const { client, api } = fakeClient({ service: 'shop', environment: 'production', metadata: { host: 'a' } })
  const child = client.child({ request: 'r1' }, { service: 'billing' })
  client.info('paid', { order: 7 })
  child.warn('slow', { host: 'b' })
  child.send({ level: 'log', message: 'm', service: 'own', metadata: { host: 'c' }, host: 'd', user: 1 })
  await pass(1_000)
  const environment = 'production'
  const timestamp = expect.stringMatching(/^\d{4}-.*Z$/) as string
  const all = { environment, timestamp }
  const own = { host: 'c', request: 'r1', user: 1 }
  expect((JSON.parse(api.last.body) as { logs: unknown }).logs).toEqual([
    { ...all, level: 'info', message: 'paid', service: 'shop', metadata: { host: 'a', order: 7 } },
    { ...all, level: 'warn', message: 'slow', service: 'billing', metadata: { host: 'b', request: 'r1' } },
    { ...all, level: 'log', message: 'm', service: 'own', metadata: own },
  ])
})

/** Like an error of Axios: the request has its sockets, and the message is what counts. */
function httpError(): Error {
  const socket: Record<string, unknown> = { buffer: 'é'.repeat(40_000) }
  const request = { socket, headers: { authorization: 'Bearer secret' } }
  socket['request'] = request
  const error = new Error('Request failed with status code 500', { cause: new Error('aborted') })
  return Object.assign(error, { code: 'ERR_BAD_RESPONSE', config: { request }, request })
}

describe('an error with properties that are too large, such as errors of HTTP clients', () => {
  const message = 'Request failed with status code 500'
  const cause = { name: 'Error', message: 'aborted', stack: expect.stringContaining('aborted') as string }
  const error = { name: 'Error', message, code: 'ERR_BAD_RESPONSE', cause }

  test.each<[string, (client: SluiceClient) => void, object]>([
    ['as a field', (client) => client.error('m', { error: httpError(), order: 7 }), { error, order: 7 }],
    ['as the message', (client) => client.error(httpError()), { error }],
    ['in an object', (client) => client.info('m', { a: { error: httpError() } }), { a: { error } }],
  ])('is sent without them: %s', async (_name, log, metadata) => {
    const { client, api } = fakeClient()
    log(client)
    await pass(1_000)
    expect(JSON.parse(api.last.body)).toMatchObject({ logs: [{ metadata }] })
    expect(api.last.body).not.toContain('secret')
  })

  test('does not save an entry whose other fields are too large', () => {
    const { client, reported } = fakeClient()
    client.error('m', { error: httpError(), huge: 'x'.repeat(70_000) })
    expect(reported.rejections).toMatchObject([{ error: { path: '/metadata', code: 'too_large' } }])
  })
})
