import { Readable } from 'node:stream'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient, sending } from './support/fake-client.ts'
import { pass, problemOf, refused } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers())

describe('202', () => {
  test('reports each rejected entry with its reason', async () => {
    const { client, api, reported } = fakeClient()
    const tags = [{ line: 1 }, { line: 2 }, { line: 3 }]
    for (const tag of tags) client.send({ level: 'info', message: String(tag.line) }, tag)
    const flushed = client.flush()
    await pass(0)
    const errors = [
      { index: 1, path: '/timestamp', code: 'invalid_timestamp', message: 'must be …' },
      { index: 1, path: '/level', code: 'not_allowed', message: 'must be …' },
    ]
    api.last.respond(202, { success: true, accepted: 2, rejected: 1, errors })
    expect(await flushed).toMatchObject({ accepted: 2, rejected: 1 })
    expect(reported.rejections).toEqual([
      {
        entry: expect.stringContaining('"message":"2"') as string,
        error: { path: '/timestamp', code: 'invalid_timestamp', message: 'must be …' },
        tag: tags[1],
      },
    ])
    expect(reported.settlements).toMatchObject([{ outcome: 'answered', accepted: 2, rejected: 1 }])
    expect(client.stats).toMatchObject({ accepted: 2, rejected: 1 })
  })

  test.each([
    '',
    '{}',
    'null',
    '<html>',
    '{"accepted":"1","rejected":0}',
    '{"accepted":-1,"rejected":2}',
    '{"accepted":0.5,"rejected":0.5}',
  ])('without counts is not from the API: %j', async (body) => {
    const { api, reported } = await sending(1, { compression: 'none' })
    await api.respond(202, body === '' ? undefined : body)
    expect(reported.errors).toMatchObject([{ kind: 'configuration', status: 202 }])
  })

  test.each(['{"level":"info","message":"a"},{"level":"info","message":"b"}', '{}'])(
    'with counts of other entries ends the request: a string was not exactly one entry: %s',
    async (json) => {
      const { client, api, reported, send } = fakeClient()
      client.sendJson(json)
      const flushed = client.flush()
      await pass(0)
      api.last.respond(202, { accepted: 2, rejected: 1 })
      expect(await flushed).toMatchObject({ rejected: 1, problem: undefined })
      expect(reported.rejections).toMatchObject([
        { error: { code: 'wrong_count', message: expect.stringContaining('accepted 2') as string } },
      ])
      await send(1, 1_000)
      expect(api.requests).toHaveLength(2)
      expect(reported.errors).toEqual([])
    },
  )

  test('with a position outside of the request is survived', async () => {
    const { api, reported } = await sending(1)
    const errors = [null, { index: 7, path: '', code: 'x', message: 'x' }, { index: 'a' }]
    await api.respond(202, { accepted: 0, rejected: 1, errors })
    expect(reported).toMatchObject({ settlements: [{ rejected: 1 }], rejections: [] })
  })
})

describe('a rejected request is not retried, and all its entries are reported', () => {
  test.each([
    [400, problemOf('invalid_json'), 'invalid_json'],
    [415, problemOf('unsupported_media_type'), 'unsupported_media_type'],
    [422, problemOf('idempotency_key_reused'), 'idempotency_key_reused'],
  ])('%i %o', async (status, body, code) => {
    const { client, api, reported, log, send } = fakeClient()
    log(2)
    const flushed = client.flush()
    await pass(0)
    api.last.respond(status, body)
    expect(await flushed).toMatchObject({ accepted: 0, rejected: 2 })
    await pass(120_000)
    expect(api.requests).toHaveLength(1)
    expect(reported.rejections.map(({ error }) => error.code)).toEqual([code, code])
    expect(reported.settlements).toMatchObject([{ outcome: 'rejected', rejected: 2 }])
    // The next request is sent as usual.
    await send(1, 1_000)
    expect(api.requests).toHaveLength(2)
  })
})

describe('a request that is too large', () => {
  const tooLarge = [
    [413, '<html>'],
    [413, problemOf('body_too_large')],
    [400, problemOf('too_many_entries')],
  ] as const

  test.each(tooLarge)('is split until its parts are accepted: %i %o', async (status, body) => {
    const { client, api, log } = fakeClient()
    log(10)
    const flushed = client.flush()
    await pass(0)
    const seen = new Set<unknown>()
    for (let i = 0; i < 20; i += 1) {
      for (const request of api.requests) {
        if (seen.has(request)) continue
        seen.add(request)
        if (request.messages.length > 3) request.respond(status, body)
        else request.accept()
      }
      await pass(0)
    }
    expect(await flushed).toMatchObject({ accepted: 10, rejected: 0, pending: 0 })
    const accepted = api.requests.filter(({ messages }) => messages.length <= 3)
    expect(accepted.flatMap(({ messages }) => messages).toSorted((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 10 }, (_, i) => String(i + 1)),
    )
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
    expect(api.requests.slice(2).map(({ key }) => key)).toEqual([`${whole}-1`, `${whole}-2`])
    for (const request of api.requests.slice(2)) request.accept()
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
    [404, problemOf('project_not_found')],
    [404, '<html>'],
    [405, '<html>'],
    [400, '<html>'],
    [400, '{}'],
    [415, undefined],
    [422, '<html>'],
    [431, undefined],
    [301, undefined],
    [200, '<html>'],
  ])('is reported once, and the entries are kept: %i', async (status, body) => {
    const { client, api, reported, send } = fakeClient({ batchEntriesMax: 1 })
    await send(3)
    for (const request of api.requests) request.respond(status, body)
    await pass(59_000)
    expect(api.requests).toHaveLength(3)
    expect(reported.errors).toMatchObject([{ kind: 'configuration', status }])
    expect(reported.errors[0]?.message).toMatch(
      /^https:\/\/logs\.example\.com\/v1\/logs rejects all requests: /,
    )
    expect(client.stats.queuedEntries).toBe(3)
    expect(reported.drops).toEqual([])
  })

  test('is retried each minute, and reported again after a success', async () => {
    const { api, reported, send } = await sending(1)
    api.last.respond(404, problemOf('project_not_found'))
    await pass(60_000)
    api.last.respond(404, problemOf('project_not_found'))
    await pass(60_000)
    expect(api.requests).toHaveLength(3)
    expect(reported.errors).toHaveLength(1)
    await api.accept()
    await send(1, 1_000)
    await api.respond(404, problemOf('project_not_found'))
    expect(reported.errors).toHaveLength(2)
  })

  test.each(['flush', 'close'] as const)('ends a %s at once, with the problem', async (method) => {
    const { client, api, reported, log } = fakeClient()
    log(2)
    const ended = client[method]()
    await pass(0)
    api.last.respond(401, problemOf('unauthorized'))
    const problem = { kind: 'configuration', message: expect.stringContaining('(401)') as string }
    const isClosed = method === 'close'
    expect(await ended).toMatchObject({ problem, pending: isClosed ? 0 : 2, dropped: isClosed ? 2 : 0 })
    expect(reported.drops).toEqual(isClosed ? [{ messages: ['1', '2'], reason: 'closed' }] : [])
  })
})

test('an endless response is cut off', async () => {
  let pulled = 0
  const { reported, send } = fakeClient({
    fetch: async () =>
      new Response(
        new ReadableStream({
          pull: (controller) => {
            pulled += 1
            controller.enqueue(new Uint8Array(65_536).fill(32))
          },
        }),
        { status: 202 },
      ),
  })
  await send(1, 1_000)
  expect(reported.errors).toMatchObject([{ kind: 'configuration' }])
  expect(pulled).toBeLessThan(20)
})

test('a fetch whose responses have no web stream, such as node-fetch, is read as a string', async () => {
  const { client, send } = fakeClient({
    fetch: async () => ({
      status: 202,
      headers: new Headers(),
      body: Readable.from(['not read']),
      text: async () => '{"accepted":2,"rejected":0}',
    }),
  })
  await send(2, 1_000)
  expect(client.stats).toMatchObject({ accepted: 2, failedAttempts: 0 })
})
