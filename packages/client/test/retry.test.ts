import { beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient, sending } from './support/fake-client.ts'
import { type FakeRequest, pass, problemOf, refused } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 10, 23) }))

const MINUTE_MS = 60_000
const alone = { batchEntriesMax: 1 }

describe('a request is retried with the same key and body', () => {
  test.each([408, 429, 500, 503, 599])('after %i', async (status) => {
    const { client, api, reported } = await sending(2)
    api.last.respond(status, '<html>')
    await pass(250)
    expect(api.requests).toHaveLength(2)
    expect(api.last).toMatchObject({ key: api.requests[0]?.key, body: api.requests[0]?.body })
    const retry = { status, attempt: 1, delayMs: 250, entries: 2, hasReceivedResponse: true }
    expect(reported.retries).toMatchObject([retry])
    await api.accept()
    expect(client.stats).toMatchObject({ accepted: 2, failedAttempts: 1, queuedEntries: 0, queuedBytes: 0 })
  })

  test('after a network error, also one that cannot be read', async () => {
    const { api, reported } = await sending(1)
    const [cause, unreadable] = [refused(), Object.create(null) as unknown]
    api.last.fail(cause)
    await pass(250)
    api.last.fail(unreadable)
    await pass(500)
    expect(api.requests).toHaveLength(3)
    expect(new Set(api.requests.map(({ key }) => key)).size).toBe(1)
    const unknown = { status: undefined, hasReceivedResponse: false }
    expect(reported.retries).toMatchObject([{ ...unknown, cause, reason: 'connect ECONNREFUSED' }, unknown])
  })

  test.each([true, false])('after a timeout, if `fetch` honours its signal: %s', async (isHonoured) => {
    const fetch = vi.fn<() => Promise<Response>>(() => new Promise(() => undefined))
    const { api, reported } = await sending(1, { requestTimeoutMs: 5_000, ...(!isHonoured && { fetch }) })
    await pass(4_999)
    expect(api.requests[0]?.signal.aborted ?? false).toBe(false)
    await pass(251)
    expect(api.requests[0]?.signal.aborted ?? true).toBe(true)
    expect(isHonoured ? api.requests : fetch.mock.calls).toHaveLength(2)
    const reason = 'no response within 5000 ms'
    expect(reported.retries).toMatchObject([{ reason, cause: { name: 'TimeoutError' } }])
  })
})

test('the waits grow from half a second to half a minute, at random from zero on', async () => {
  const { reported, api } = await sending(1, {}, 0.999_999)
  for (let i = 0; i < 9; i += 1) {
    api.last.fail(refused())
    await pass(30_000)
  }
  const waitsMs = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]
  expect(reported.retries.map(({ delayMs }) => delayMs)).toEqual(waitsMs)
  const atOnce = await sending(1, {}, 0)
  atOnce.api.last.fail(refused())
  await pass(1)
  expect(atOnce.api.requests).toHaveLength(2)
})

describe('Retry-After', () => {
  test.each([
    ['7', 7_000],
    ['soon', 250],
    ['7, 7', 7_000],
    ['1.5', 250],
    ['Monday 5', 250],
    ['999999999', 60 * MINUTE_MS],
  ])('%s is honoured by all requests', async (header, waitMs) => {
    const { api, log } = await sending(1, alone)
    await api.respond(429, problemOf('rate_limited'), { 'retry-after': header })
    log(1)
    await pass(waitMs - 1)
    expect(api.requests).toHaveLength(1)
    await pass(2)
    // One request finds out whether others are accepted.
    expect(api.messages).toEqual([['1'], ['2']])
    await api.accept()
    expect(api.last.messages).toEqual(['1'])
  })

  test('is not ended by the success of a request in flight', async () => {
    const { api, log } = await sending(2, alone)
    api.requests[0]?.respond(429, problemOf('rate_limited'), { 'retry-after': '10' })
    await pass(0)
    await api.accept()
    log(1)
    await pass(9_000)
    expect(api.requests).toHaveLength(2)
    await pass(1_100)
    expect(api.requests).toHaveLength(4)
  })
})

describe('during an outage after which requests may be stored', () => {
  test('one request at a time is sent, and mostly one of those that were sent before', async () => {
    let seed = 1
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647
    const { client, api, reported, send } = fakeClient(alone, random)
    await send(50)
    expect(api.requests).toHaveLength(4)
    api.respondAll(502)
    for (let second = 0; second < 40 * 60; second += 1) {
      const sent = api.requests.length
      await pass(1_000)
      expect(api.requests.length - sent).toBeLessThanOrEqual(1)
      api.last.respond(502)
    }
    const tried = new Set(api.requests.map(({ key }) => key)).size
    expect(api.requests.length).toBeGreaterThan(100)
    expect(tried).toBeLessThanOrEqual(12)
    // The entries of the first minutes are dropped at the end of their window.
    for (let second = 0; second < 20 * 60; second += 1) {
      await pass(1_000)
      api.last.fail(refused())
    }
    const dropped = reported.drops.length
    expect(dropped).toBeGreaterThanOrEqual(4)
    expect(dropped).toBeLessThanOrEqual(tried)
    expect(reported.drops.every(({ reason }) => reason === 'outcome-unknown')).toBe(true)
    api.isAccepting = true
    api.last.accept()
    await pass(60_000)
    expect(client.stats).toMatchObject({ accepted: 50 - dropped, queuedEntries: 0 })
  })

  test('a request that hangs does not prevent others from being sent', async () => {
    const { client, api, send } = await sending(4, alone)
    api.requests[0]?.respond(502)
    await pass(1_000)
    // Three requests hang since before the failure.
    expect(api.requests).toHaveLength(5)
    api.isAccepting = true
    api.last.accept()
    await send(10, 1_000)
    expect(client.stats).toMatchObject({ accepted: 11, requestsInFlight: 3 })
  })
})

test.each([1, 4])('%d requests that fail again and again do not stop others', async (count) => {
  const { client, api, send } = await sending(count, alone)
  const poison = new Set(api.requests.map(({ key }) => key))
  api.respondAll(500)
  for (let i = 2; i < 100; i += 1) {
    await send(1, 1_000)
    await api.rejectIf(({ key }) => poison.has(key), 500)
  }
  await pass(1_000)
  expect(client.stats.accepted).toBeGreaterThan(95)
})

describe('the idempotency window', () => {
  test('ends the retries of a request whose outcome is unknown, before the API forgets its key', async () => {
    const { api, reported } = await sending(1)
    const startedAtMs = Date.now()
    let lastMs = 0
    while (reported.drops.length === 0) {
      lastMs = Date.now() - startedAtMs
      api.last.respond(502)
      await pass(30_000)
    }
    expect(reported.drops).toEqual([{ messages: ['1'], reason: 'outcome-unknown' }])
    expect(lastMs).toBeGreaterThan(45 * MINUTE_MS)
    expect(lastMs).toBeLessThan(50 * MINUTE_MS)
    expect(new Set(api.requests.map(({ key }) => key)).size).toBe(1)
  })

  test.each<[string, (request: FakeRequest) => void]>([
    ['refused connections', (request) => request.fail(refused())],
    ['overload', (request) => request.respond(503, problemOf('overloaded'))],
    ['rate limits of a proxy', (request) => request.respond(429, '<html>')],
  ])('does not limit %s, after which nothing was stored', async (_name, respond) => {
    const { client, api, reported } = await sending(1)
    for (let i = 0; i < 240; i += 1) {
      respond(api.last)
      await pass(30_000)
    }
    expect(reported.drops).toEqual([])
    await api.accept()
    expect(client.stats.accepted).toBe(1)
  })

  test.each([
    [503, problemOf('queue_unavailable')],
    [503, '<html>'],
    [408, '<html>'],
    [200, '<html>'],
    [202, '{}'],
  ])('limits %i %o, after which the entries may be stored', async (status, body) => {
    const { api, reported } = await sending(1)
    await api.respond(status, body)
    // Later failures are known, but the first one still counts.
    for (let second = 0; second < 3_600 && reported.drops.length === 0; second += 1) {
      await pass(1_000)
      api.last.fail(refused())
    }
    expect(reported.drops).toEqual([{ messages: ['1'], reason: 'outcome-unknown' }])
  })

  test('is measured by the time of day too: the other clock may stop while a computer sleeps', async () => {
    const { api, reported } = await sending(1)
    await api.respond(502)
    vi.setSystemTime(Date.now() + 60 * MINUTE_MS)
    await pass(1_000)
    expect(api.requests).toHaveLength(1)
    expect(reported.drops).toEqual([{ messages: ['1'], reason: 'outcome-unknown' }])
  })
})

describe('retries end after `retryForMs`', () => {
  test('if the API is not available', async () => {
    const { client, api, reported } = await sending(1, { retryForMs: 5_000 })
    for (let i = 0; i < 10 && reported.drops.length === 0; i += 1) {
      api.last.fail(refused())
      await pass(4_000)
    }
    expect(reported.drops).toEqual([{ messages: ['1'], reason: 'retries' }])
    const cause = expect.any(TypeError) as TypeError
    expect(reported.settlements).toMatchObject([
      { outcome: 'retries', reason: 'connect ECONNREFUSED', cause },
    ])
    expect(client.stats).toMatchObject({ accepted: 0, dropped: 1 })
  })

  test('if it rejects all requests, after the problem was reported', async () => {
    const order: unknown[] = []
    const onError = (): unknown => order.push('onError')
    const { api } = await sending(1, { retryForMs: 30_000, onError, onSettled: (end) => order.push(end) })
    await unauthorized(api.last)
    const reason = expect.stringMatching(/^the API key .*\(401\)$/) as string
    expect(order).toEqual(['onError', expect.objectContaining({ outcome: 'retries', reason })])
  })

  test('but an application that closes the client in `onError` gives the entries up', async () => {
    const onError = (): void => void fake.client.close({ remaining: 'give-up' })
    const fake = await sending(1, { retryForMs: 0, onError })
    await unauthorized(fake.api.last)
    expect(fake.reported.drops).toMatchObject([{ reason: 'closed' }])
  })
})

async function unauthorized(...requests: FakeRequest[]): Promise<void> {
  for (const request of requests) request.respond(401, problemOf('unauthorized'))
  await pass(0)
}

/** A client with one entry in each request, which the API has accepted once. */
async function afterSuccess() {
  const fake = await sending(1, alone)
  await fake.api.accept()
  return fake
}

describe('a request that is rejected while others succeed', () => {
  test('is rejected after the third time, and stops the others for a minute at most', async () => {
    const { client, api, reported, send } = fakeClient(alone)
    const queued: number[] = []
    for (let second = 0; second <= 240 && reported.rejections.length === 0; second += 1) {
      await send(1)
      // Like a firewall that does not like the content of entry 1. Each response may start further requests.
      for (let i = 0; i < 20; i += 1)
        await api.rejectIf(({ messages }) => messages.includes('1'), 403, '<html>')
      if (second > 62) queued.push(client.stats.queuedEntries)
      await pass(1_000)
    }
    expect(api.requests.filter(({ messages }) => messages.includes('1'))).toHaveLength(3)
    const message = expect.stringContaining('3 times') as string
    expect(reported.rejections).toMatchObject([{ error: { code: 'http_403', message } }])
    expect(Math.max(...queued)).toBeLessThanOrEqual(2)
    expect(reported.errors).toHaveLength(1)
    expect(client.stats).toMatchObject({ rejected: 1, dropped: 0 })
  })

  test.each([403, 400])('does not stop the others if one has succeeded before: %i', async (status) => {
    const { client, api, reported, send } = await afterSuccess()
    await send(1)
    const { key } = api.last
    for (const [waitMs, others] of [
      [0, 10],
      [1_000, 1],
      [60_000, 1],
    ] as const) {
      await pass(waitMs)
      expect(api.last.key).toBe(key)
      api.last.respond(status, '<html>')
      api.isAccepting = true
      await send(others)
      api.isAccepting = false
    }
    expect(reported.rejections).toMatchObject([{ error: { code: `http_${status}` } }])
    expect(client.stats).toMatchObject({ accepted: 13, rejected: 1, queuedEntries: 0 })
    expect(reported.errors).toEqual([])
  })

  test('is kept if no other succeeds', async () => {
    const { client, api } = await sending(1)
    for (let minute = 0; minute < 10; minute += 1) {
      await unauthorized(api.last)
      await pass(60_000)
    }
    expect(client.stats).toMatchObject({ rejected: 0, queuedEntries: 1 })
  })
})

describe('when all requests begin to be rejected', () => {
  test('by the API, the first is reported', async () => {
    const { api, reported, send } = await afterSuccess()
    await send(1)
    await unauthorized(api.last)
    expect(reported.errors).toMatchObject([{ kind: 'configuration', status: 401 }])
  })

  test('by something else, the second is reported, and all sending pauses', async () => {
    const { api, reported, log, send } = await afterSuccess()
    await send(3)
    api.requests[1]?.respond(403, '<html>')
    await pass(0)
    expect(reported.errors).toEqual([])
    api.requests[2]?.respond(403, '<html>')
    await pass(0)
    expect(reported.errors).toMatchObject([{ kind: 'configuration', status: 403 }])
    api.last.respond(403, '<html>')
    log(1)
    await pass(59_000)
    expect(api.requests).toHaveLength(4)
    await pass(2_000)
    expect(api.requests).toHaveLength(5)
  })

  test('a single request is repeated after a second, and a flush ends with the problem', async () => {
    const { client, api, send } = await afterSuccess()
    await send(1)
    const flushed = client.flush()
    api.last.respond(403, '<html>')
    await pass(1_000)
    api.last.respond(403, '<html>')
    expect(await flushed).toMatchObject({ pending: 1, problem: { status: 403 } })
  })
})

test('while the API rejects all requests, one at a time is made, and all are sent after a success', async () => {
  const { client, api, send } = fakeClient(alone)
  await send(8)
  await unauthorized(...api.requests)
  for (let minute = 0; minute <= 3; minute += 1) {
    expect(api.requests).toHaveLength(4 + minute)
    await unauthorized(api.last)
    await pass(60_000)
  }
  api.isAccepting = true
  api.last.accept()
  await pass(60_000)
  expect(client.stats).toMatchObject({ accepted: 8, queuedEntries: 0 })
})

describe('a close after a problem', () => {
  test.each([true, false])(
    'tries once, and sends everything if the problem was solved: %s',
    async (isSolved) => {
      const { client, api, log, send } = fakeClient(alone)
      await send(3)
      await unauthorized(...api.requests)
      await pass(5_000)
      log(2)
      api.isAccepting = isSolved
      const closed = client.close()
      await pass(0)
      if (!isSolved) await unauthorized(api.last)
      const [accepted, dropped, problem] = isSolved ? [5, 0, undefined] : [0, 5, { status: 401 }]
      expect(await closed).toMatchObject({ accepted, dropped, problem })
      expect(api.requests).toHaveLength(isSolved ? 8 : 4)
    },
  )

  test('does not try during a pause that the API asked for', async () => {
    const { api, send, close } = fakeClient(alone)
    await send(2)
    api.requests[0]?.respond(429, problemOf('rate_limited'), { 'retry-after': '60' })
    await unauthorized(api.last)
    expect(await close({ timeoutMs: 1_000 })).toMatchObject({ dropped: 2 })
    expect(api.requests).toHaveLength(2)
  })
})
