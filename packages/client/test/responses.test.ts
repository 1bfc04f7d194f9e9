import { Readable } from 'node:stream'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient } from './support/fake-client.ts'
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
    const { api, reported, log } = fakeClient({ compression: 'none' })
    log(1)
    await pass(1_000)
    api.last.respond(202, body === '' ? undefined : body)
    await pass(0)
    expect(reported.errors).toMatchObject([{ kind: 'configuration', status: 202 }])
  })

  test.each(['{"level":"info","message":"a"},{"level":"info","message":"b"}', '{}'])(
    'with counts of other entries ends the request: a text was not exactly one entry: %s',
    async (text) => {
      const { client, api, reported, log } = fakeClient()
      client.sendJson(text)
      const flushed = client.flush()
      await pass(0)
      api.last.respond(202, { accepted: 2, rejected: 1 })
      expect(await flushed).toMatchObject({ rejected: 1, problem: undefined })
      expect(reported.rejections).toMatchObject([
        { error: { code: 'wrong_count', message: expect.stringContaining('accepted 2') as string } },
      ])
      log(1)
      await pass(1_000)
      expect(api.requests).toHaveLength(2)
      expect(reported.errors).toEqual([])
    },
  )

  test('with a position outside of the request is survived', async () => {
    const { api, reported, log } = fakeClient()
    log(1)
    await pass(1_000)
    const errors = [null, { index: 7, path: '', code: 'x', message: 'x' }, { index: 'a' }]
    api.last.respond(202, { accepted: 0, rejected: 1, errors })
    await pass(0)
    expect(reported.settlements).toMatchObject([{ rejected: 1 }])
    expect(reported.rejections).toEqual([])
  })
})

describe('a rejected request is not retried, and all its entries are reported', () => {
  test.each([
    [400, problemOf('invalid_json'), 'invalid_json'],
    [415, problemOf('unsupported_media_type'), 'unsupported_media_type'],
    [422, problemOf('idempotency_key_reused'), 'idempotency_key_reused'],
  ])('%i %o', async (status, body, code) => {
    const { client, api, reported, log } = fakeClient()
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
    log(1)
    await pass(1_000)
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
    const { api, reported, log } = fakeClient()
    log(1)
    await pass(1_000)
    api.last.respond(413, problemOf('body_too_large'))
    await pass(0)
    expect(reported.rejections).toMatchObject([{ error: { code: 'body_too_large' } }])
  })

  test('is split after an attempt without an answer too: it would have been rejected as well', async () => {
    const { client, api, reported, log } = fakeClient()
    log(2)
    await pass(1_000)
    // What a client sees whose server rejects a large body before it was read.
    api.last.fail(new TypeError('fetch failed', { cause: new Error('write EPIPE') }))
    await pass(1_000)
    api.last.respond(413, problemOf('body_too_large'))
    await pass(0)
    const whole = api.requests[0]?.key
    expect(api.requests.slice(2).map(({ key }) => key)).toEqual([`${whole}-1`, `${whole}-2`])
    for (const request of api.requests.slice(2)) request.accept()
    await pass(0)
    expect(reported.rejections).toEqual([])
    expect(client.stats).toMatchObject({ accepted: 2, queuedEntries: 0, queuedBytes: 0 })
  })

  test('has parts that are given up before the API forgets the keys of earlier attempts', async () => {
    const { api, reported, log } = fakeClient()
    log(2)
    await pass(1_000)
    api.last.respond(502)
    await pass(1_000)
    api.last.respond(413, problemOf('body_too_large'))
    await pass(0)
    for (let i = 0; i < 120 && reported.drops.length < 2; i += 1) {
      for (const request of api.requests.slice(2)) request.fail(refused())
      await pass(30_000)
    }
    expect(reported.drops.map(({ reason }) => reason)).toEqual(['outcome-unknown', 'outcome-unknown'])
  })

  test('has parts with the same keys whenever it is sent', async () => {
    const first = fakeClient()
    first.log(2)
    await pass(1_000)
    first.api.last.respond(413)
    await pass(0)
    const [whole, ...parts] = first.api.requests.map(({ key }) => key)
    expect(parts).toEqual([`${whole}-1`, `${whole}-2`])
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
    const { client, api, reported, log } = fakeClient({ batchEntriesMax: 1 })
    log(3)
    await pass(0)
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
    const { api, reported, log } = fakeClient()
    log(1)
    await pass(1_000)
    api.last.respond(404, problemOf('project_not_found'))
    await pass(60_000)
    api.last.respond(404, problemOf('project_not_found'))
    await pass(60_000)
    expect(api.requests).toHaveLength(3)
    expect(reported.errors).toHaveLength(1)
    api.last.accept()
    await pass(0)
    log(1)
    await pass(1_000)
    api.last.respond(404, problemOf('project_not_found'))
    await pass(0)
    expect(reported.errors).toHaveLength(2)
  })

  test('ends a flush at once, with the problem', async () => {
    const { client, api, log } = fakeClient()
    log(2)
    const flushed = client.flush()
    await pass(0)
    api.last.respond(401, problemOf('unauthorized'))
    expect(await flushed).toMatchObject({
      pending: 2,
      problem: { kind: 'configuration', message: expect.stringContaining('(401)') as string },
    })
    expect(await client.flush()).toMatchObject({ pending: 2 })
  })

  test('ends a close at once, and the entries are dropped', async () => {
    const { client, api, reported, log } = fakeClient()
    log(2)
    const closed = client.close()
    await pass(0)
    api.last.respond(401, problemOf('unauthorized'))
    expect(await closed).toMatchObject({ dropped: 2, pending: 0, problem: { kind: 'configuration' } })
    expect(reported.drops).toEqual([{ messages: ['1', '2'], reason: 'closed' }])
  })
})

test('an endless response is cut off', async () => {
  let pulled = 0
  const { reported, log } = fakeClient({
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
  log(1)
  await pass(1_000)
  expect(reported.errors).toMatchObject([{ kind: 'configuration' }])
  expect(pulled).toBeLessThan(20)
})

test('a fetch whose responses have no web stream, such as that of node-fetch, is read as text', async () => {
  const { client, log } = fakeClient({
    fetch: async () => ({
      status: 202,
      headers: new Headers(),
      body: Readable.from(['not read']),
      text: async () => '{"accepted":2,"rejected":0}',
    }),
  })
  log(2)
  await pass(1_000)
  expect(client.stats).toMatchObject({ accepted: 2, failedAttempts: 0 })
})
