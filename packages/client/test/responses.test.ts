import { Readable } from 'node:stream'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient, sending } from './support/fake-client.ts'
import { type FakeRequest, pass, problemOf, refused } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers())

describe('202', () => {
  test('reports each rejected entry once, with its first reason and its tag', async () => {
    const { client, api, reported } = fakeClient()
    for (const tag of [1, 2, 3]) client.send({ level: 'info', message: String(tag) }, tag)
    await pass(1_000)
    const error = { path: '/timestamp', code: 'invalid_timestamp', message: 'must be …' }
    const second = { index: 1, path: '/level', code: 'not_allowed', message: 'must be …' }
    const others = [null, { ...error, index: 7 }, { index: 'a' }]
    const errors = [{ index: 1, ...error }, second, ...others]
    await api.respond(202, { success: true, accepted: 2, rejected: 1, errors })
    const entry = expect.stringContaining('"message":"2"') as string
    expect(reported.rejections).toEqual([{ entry, error, tag: 2 }])
    expect(reported.settlements).toMatchObject([{ outcome: 'answered', accepted: 2, rejected: 1 }])
    expect(client.stats).toMatchObject({ accepted: 2, rejected: 1 })
  })

  test.each([
    undefined,
    '{}',
    'null',
    '<html>',
    '{"accepted":"1","rejected":0}',
    '{"accepted":-1,"rejected":2}',
  ])('without counts is not from the API: %j', async (body) => {
    const { api, reported } = await sending(1)
    await api.respond(202, body)
    expect(reported.errors).toMatchObject([{ kind: 'configuration', status: 202 }])
  })

  test('with counts of other entries ends the request: a string was not exactly one entry', async () => {
    const { client, api, reported, send } = fakeClient()
    client.sendJson('{"level":"info","message":"a"},{"level":"info","message":"b"}')
    await pass(1_000)
    await api.respond(202, { accepted: 2, rejected: 1 })
    const message = expect.stringContaining('accepted 2') as string
    expect(reported.rejections).toMatchObject([{ error: { code: 'wrong_count', message } }])
    await send(1, 1_000)
    expect(api.requests).toHaveLength(2)
    expect(reported.errors).toEqual([])
  })
})

test.each([
  [400, 'invalid_json'],
  [415, 'unsupported_media_type'],
  [422, 'idempotency_key_reused'],
  [431, 'headers_too_large'],
])(
  'a request that is rejected with %i %s is not retried, and all its entries are reported',
  async (status, code) => {
    const { api, reported, send } = await sending(2)
    api.last.respond(status, problemOf(code))
    await pass(120_000)
    expect(api.requests).toHaveLength(1)
    expect(reported.rejections.map(({ error }) => error.code)).toEqual([code, code])
    expect(reported.settlements).toMatchObject([{ outcome: 'rejected', rejected: 2 }])
    // The next request is sent as usual.
    await send(1, 1_000)
    expect(api.requests).toHaveLength(2)
  },
)

const isTooLarge = ({ messages }: FakeRequest): boolean => messages.length > 3

describe('a request that is too large', () => {
  test.each([
    [413, '<html>'],
    [413, problemOf('body_too_large')],
    [400, problemOf('too_many_entries')],
  ])('is split until its parts are accepted: %i %o', async (status, body) => {
    const { client, api } = await sending(10)
    for (let i = 0; i < 5; i += 1) await api.rejectIf(isTooLarge, status, body)
    const accepted = api.requests
      .filter((request) => !isTooLarge(request))
      .flatMap(({ messages }) => messages)
    expect(accepted.map(Number).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(new Set(api.requests.map(({ key }) => key)).size).toBe(api.requests.length)
    expect(client.stats).toMatchObject({ accepted: 10, queuedEntries: 0, queuedBytes: 0 })
  })

  test('is rejected if it has one entry', async () => {
    const { api, reported } = await sending(1)
    await api.respond(413, problemOf('body_too_large'))
    expect(reported.rejections).toMatchObject([{ error: { code: 'body_too_large' } }])
  })

  test('is split after an attempt without a response too: it would have been rejected as well', async () => {
    const { client, api, reported } = await sending(2)
    // What a client sees whose server rejects a large body before it was read.
    api.last.fail(new TypeError('fetch failed', { cause: new Error('write EPIPE') }))
    await pass(1_000)
    await api.respond(413, problemOf('body_too_large'))
    const whole = api.requests[0]?.key
    const halves = api.requests.slice(2)
    expect(halves.map(({ key }) => key)).toEqual([`${whole}-1`, `${whole}-2`])
    for (const request of halves) request.accept()
    await pass(0)
    expect(reported.rejections).toEqual([])
    expect(client.stats).toMatchObject({ accepted: 2, queuedEntries: 0, queuedBytes: 0 })
  })

  test('has parts that are given up before the API forgets the keys of earlier attempts', async () => {
    const { api, reported } = await sending(2)
    api.last.respond(502)
    await pass(1_000)
    await api.respond(413, problemOf('body_too_large'))
    for (let i = 0; i < 120 && reported.drops.length < 2; i += 1) {
      for (const request of api.requests.slice(2)) request.fail(refused())
      await pass(30_000)
    }
    expect(reported.drops.map(({ reason }) => reason)).toEqual(['outcome-unknown', 'outcome-unknown'])
  })
})

describe('a wrong key, project or address', () => {
  test.each([
    [401, problemOf('unauthorized')],
    [403, problemOf('forbidden')],
    [404, '<html>'],
    [400, '<html>'],
    [400, '{}'],
    [431, undefined],
    [301, undefined],
    [200, '<html>'],
  ])('is reported once, and the entries are kept: %i', async (status, body) => {
    const { client, api, reported, send } = fakeClient({ batchEntriesMax: 1 })
    await send(3)
    api.respondAll(status, body)
    await pass(59_000)
    expect(api.requests).toHaveLength(3)
    const message = expect.stringMatching(/^https:.*\/v1\/logs rejects all requests: /) as string
    expect(reported.errors).toMatchObject([{ kind: 'configuration', status, message }])
    expect(client.stats).toMatchObject({ queuedEntries: 3, dropped: 0 })
  })

  test('is retried each minute, and reported again after a success', async () => {
    const { api, reported, send } = await sending(1)
    for (let minute = 0; minute < 2; minute += 1) {
      api.last.respond(404, problemOf('project_not_found'))
      await pass(60_000)
    }
    expect(api.requests).toHaveLength(3)
    expect(reported.errors).toHaveLength(1)
    await api.accept()
    await send(1, 1_000)
    await api.respond(404, problemOf('project_not_found'))
    expect(reported.errors).toHaveLength(2)
  })

  test.each([
    ['flush', { pending: 2, dropped: 0 }],
    ['close', { pending: 0, dropped: 2 }],
  ] as const)('ends a %s at once, with the problem', async (method, counts) => {
    const { client, api, log } = fakeClient()
    log(2)
    const ended = client[method]()
    await pass(0)
    api.last.respond(401, problemOf('unauthorized'))
    expect(await ended).toMatchObject({ ...counts, problem: { kind: 'configuration', status: 401 } })
  })
})

test.each([true, false])(
  'an endless response is cut off: its stream can be iterated over: %s',
  async (isIterable) => {
    const pull = vi.fn<(controller: ReadableStreamDefaultController) => void>((controller) =>
      controller.enqueue(new Uint8Array(65_536).fill(32)),
    )
    const stream = new ReadableStream({ pull })
    // As in Safari.
    if (!isIterable) Object.defineProperty(stream, Symbol.asyncIterator, { value: undefined })
    const { reported } = await sending(1, { fetch: async () => new Response(stream, { status: 202 }) })
    expect(reported.errors).toMatchObject([{ kind: 'configuration' }])
    expect(pull.mock.calls.length).toBeLessThan(20)
  },
)

test('a fetch whose responses have no web stream, such as node-fetch, is read as a string', async () => {
  const other = { body: Readable.from(['not read']), text: async () => '{"accepted":2,"rejected":0}' }
  const { client } = await sending(2, {
    fetch: async () => ({ status: 202, headers: new Headers(), ...other }),
  })
  expect(client.stats).toMatchObject({ accepted: 2, failedAttempts: 0 })
})
