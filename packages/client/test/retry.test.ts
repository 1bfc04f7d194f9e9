import { beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient, sending } from './support/fake-client.ts'
import { pass, problemOf, refused, type FakeRequest } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 10, 23) }))

const MINUTE_MS = 60_000

describe('a request is retried with the same key and body', () => {
  test.each([408, 429, 500, 501, 502, 503, 504, 507, 520, 524, 599])('after %i', async (status) => {
    const { client, api, reported, log } = fakeClient()
    log(2)
    const flushed = client.flush()
    await pass(0)
    api.last.respond(status, '<html>')
    await pass(250)
    expect(api.requests).toHaveLength(2)
    expect(api.requests[1]).toMatchObject({ key: api.requests[0]?.key, messages: ['1', '2'] })
    expect(reported.retries).toMatchObject([
      { status, attempt: 1, delayMs: 250, entries: 2, hasReceivedResponse: true },
    ])
    api.last.accept()
    expect(await flushed).toMatchObject({ accepted: 2 })
    expect(client.stats).toMatchObject({ accepted: 2, failedAttempts: 1, queuedEntries: 0, queuedBytes: 0 })
  })

  test('after a network error', async () => {
    const { api, reported } = await sending(1)
    const error = refused()
    api.last.fail(error)
    await pass(250)
    expect(api.requests[1]?.key).toBe(api.requests[0]?.key)
    expect(reported.retries).toMatchObject([
      { reason: 'connect ECONNREFUSED', status: undefined, cause: error, hasReceivedResponse: false },
    ])
  })

  test('after a timeout, and the attempt is aborted', async () => {
    const { api, reported } = await sending(1, { requestTimeoutMs: 5_000 })
    await pass(4_999)
    expect(api.last.signal.aborted).toBe(false)
    await pass(1)
    expect(api.last.signal.aborted).toBe(true)
    await pass(250)
    expect(api.requests).toHaveLength(2)
    expect(reported.retries).toMatchObject([
      { reason: 'no response within 5000 ms', cause: { name: 'TimeoutError' } },
    ])
  })
})

test('a `fetch` that ignores its signal does not block the client', async () => {
  const requests: unknown[] = []
  const { send } = fakeClient({
    requestTimeoutMs: 1_000,
    fetch: (url) => {
      requests.push(url)
      return new Promise<never>(() => undefined)
    },
  })
  await send(1, 1_000)
  await pass(1_250)
  expect(requests).toHaveLength(2)
})

test('the waits grow from half a second to half a minute, at random from zero on', async () => {
  const { reported, api } = await sending(1, {}, 0.999_999)
  for (let i = 0; i < 9; i += 1) {
    api.last.fail(refused())
    await pass(30_000)
  }
  expect(reported.retries.map(({ delayMs }) => delayMs)).toEqual([
    500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
  ])
  const atOnce = await sending(1, {}, 0)
  atOnce.api.last.fail(refused())
  await pass(1)
  expect(atOnce.api.requests).toHaveLength(2)
})

describe('Retry-After', () => {
  test.each([
    ['7', 7_000],
    [new Date(Date.UTC(2026, 10, 23, 0, 0, 31)).toUTCString(), 30_000],
    ['0', 250],
    ['soon', 250],
    ['7, 7', 7_000],
    ['1.5', 250],
    ['-1', 250],
    ['Monday 5', 250],
    ['999999999', 60 * MINUTE_MS],
  ])('%s is honoured by all requests', async (header, waitMs) => {
    const { api, log } = await sending(1, { batchEntriesMax: 1 })
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
    const { api, log, send } = fakeClient({ batchEntriesMax: 1 })
    await send(2)
    api.requests[0]?.respond(429, problemOf('rate_limited'), { 'retry-after': '10' })
    await pass(0)
    api.requests[1]?.accept()
    log(1)
    await pass(9_000)
    expect(api.requests).toHaveLength(2)
    await pass(1_100)
    expect(api.requests).toHaveLength(4)
  })
})

test('while the API is unavailable, few requests are made, however many wait', async () => {
  const { api, log } = fakeClient({ batchEntriesMax: 1, requestsInFlightMax: 4 })
  for (let second = 0; second < 60; second += 1) {
    log(10)
    for (const request of api.requests) request.fail(refused())
    await pass(1_000)
  }
  expect(api.requests.length).toBeLessThan(60)
})

describe('during an outage after which requests may be stored', () => {
  test('one request at a time is sent, and mostly one of those that were sent before', async () => {
    let seed = 1
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647
    const { client, api, reported, send } = fakeClient({ batchEntriesMax: 1 }, random)
    await send(50)
    expect(api.requests).toHaveLength(4)
    for (const request of api.requests) request.respond(502)
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
    const { client, api, send } = fakeClient({ batchEntriesMax: 1 })
    await send(4)
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

test.each([1, 2, 4])('%d requests that fail again and again do not stop others', async (count) => {
  const { api, send } = fakeClient({ batchEntriesMax: 1 })
  await send(count)
  const poison = new Set(api.requests.map(({ key }) => key))
  expect(poison.size).toBe(count)
  for (const request of api.requests) request.respond(500)
  const answered = new Set<string>()
  for (let i = 2; i < 100; i += 1) {
    await send(1, 1_000)
    for (const request of api.requests) {
      if (poison.has(request.key)) request.respond(500)
      else {
        request.accept()
        answered.add(request.key)
      }
    }
  }
  await pass(1_000)
  expect(answered.size).toBeGreaterThan(95)
})

describe('the idempotency window', () => {
  test('ends the retries of a request whose outcome is unknown, before the API forgets its key', async () => {
    const { api, reported } = await sending(1)
    const startedAtMs = Date.now()
    let lastMs = 0
    for (let i = 0; reported.drops.length === 0; i += 1) {
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
    ['rate limits', (request) => request.respond(429, problemOf('rate_limited'))],
    ['rate limits of a proxy', (request) => request.respond(429, '<html>')],
  ])('does not limit %s, after which nothing was stored', async (_name, respond) => {
    const { api, reported } = await sending(1)
    const startedAtMs = Date.now()
    while (Date.now() - startedAtMs < 120 * MINUTE_MS) {
      respond(api.last)
      await pass(30_000)
    }
    expect(reported.drops).toEqual([])
    await api.accept()
    expect(reported.settlements).toMatchObject([{ outcome: 'answered', accepted: 1 }])
  })

  test.each([
    ['queue_unavailable', 503, problemOf('queue_unavailable')],
    ['a 503 of a proxy', 503, '<html>'],
    ['a 408 of a proxy', 408, '<html>'],
    ['a 500', 500, problemOf('internal_error')],
    ['a 524 of a proxy', 524, '<html>'],
    ['a 200 of something else', 200, '<html>'],
    ['a 202 without counts', 202, '{}'],
    ['a 204', 204, undefined],
  ])('limits %s, after which the entries may be stored', async (_name, status, body) => {
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

test('retries end after `retryForMs`', async () => {
  const { client, api, reported, log } = fakeClient({ retryForMs: 5_000 })
  log(1)
  const flushed = client.flush()
  await pass(0)
  for (let i = 0; i < 10 && reported.drops.length === 0; i += 1) {
    api.last.fail(refused())
    await pass(4_000)
  }
  expect(reported.drops).toEqual([{ messages: ['1'], reason: 'retries' }])
  const cause = expect.any(TypeError) as TypeError
  expect(reported.settlements).toMatchObject([{ outcome: 'retries', reason: 'connect ECONNREFUSED', cause }])
  expect(await flushed).toMatchObject({ accepted: 0, dropped: 1 })
})

test('an error of `fetch` that cannot be read is a failure like any other', async () => {
  const { client, api } = await sending(1)
  api.last.fail(Object.create(null))
  await pass(250)
  expect(client.stats).toMatchObject({ failedAttempts: 1, requestsInFlight: 1 })
})

const unauthorized = (request: FakeRequest): void => request.respond(401, problemOf('unauthorized'))

/** Rejects the entry 1, as a firewall would do that does not like its content, and accepts all others. */
function answerLikeAFirewall(requests: readonly FakeRequest[]): void {
  for (const request of requests) {
    if (request.messages.includes('1')) request.respond(403, '<html>')
    else request.accept()
  }
}

/** A client with one entry in each request, which the API has accepted once. */
async function afterSuccess() {
  const fake = fakeClient({ batchEntriesMax: 1 })
  fake.api.isAccepting = true
  await fake.send(1)
  fake.api.isAccepting = false
  return fake
}

describe('a request that is rejected while others succeed', () => {
  test('is rejected after the third time, and stops the others for a minute at most', async () => {
    const { client, api, reported, send } = fakeClient({ batchEntriesMax: 1 })
    const queued: number[] = []
    await send(1)
    answerLikeAFirewall(api.requests)
    await pass(0)
    for (let second = 1; second <= 240 && reported.rejections.length === 0; second += 1) {
      await send(1, 1_000)
      // Each response may start further requests.
      for (let i = 0; i < 20; i += 1) {
        answerLikeAFirewall(api.requests)
        await pass(0)
      }
      if (second > 62) queued.push(client.stats.queuedEntries)
    }
    expect(api.requests.filter(({ messages }) => messages.includes('1'))).toHaveLength(3)
    expect(reported.rejections).toMatchObject([
      { error: { code: 'http_403', message: expect.stringContaining('3 times') as string } },
    ])
    expect(Math.max(...queued)).toBeLessThanOrEqual(2)
    expect(reported.errors).toHaveLength(1)
    expect(client.stats).toMatchObject({ rejected: 1, dropped: 0 })
  })

  test.each([403, 400])('does not stop the others if one has succeeded before: %i', async (status) => {
    const { client, api, reported, send } = await afterSuccess()
    await send(1)
    const blocked = api.last
    blocked.respond(status, '<html>')
    api.isAccepting = true
    await send(10)
    expect(client.stats).toMatchObject({ accepted: 11, queuedEntries: 1 })
    api.isAccepting = false
    const blockAgain = async (afterMs: number): Promise<void> => {
      await pass(afterMs)
      expect(api.last.key).toBe(blocked.key)
      api.last.respond(status, '<html>')
      api.isAccepting = true
      await send(1)
      api.isAccepting = false
    }
    await blockAgain(1_000)
    await blockAgain(60_000)
    expect(reported.rejections).toMatchObject([{ error: { code: `http_${status}` } }])
    expect(client.stats).toMatchObject({ accepted: 13, rejected: 1, queuedEntries: 0 })
    expect(reported.errors).toEqual([])
  })

  test('is kept if no other succeeds', async () => {
    const { client, api, reported, log } = fakeClient()
    log(1)
    for (let minute = 0; minute < 10; minute += 1) {
      await pass(60_000)
      unauthorized(api.last)
    }
    await pass(0)
    expect(reported.rejections).toEqual([])
    expect(client.stats.queuedEntries).toBe(1)
  })
})

describe('when all requests begin to be rejected', () => {
  test('by the API, the first is reported', async () => {
    const { api, reported, send } = await afterSuccess()
    await send(1)
    unauthorized(api.last)
    await pass(0)
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
    const { client, api, log } = await afterSuccess()
    log(1)
    const flushed = client.flush()
    await pass(0)
    api.last.respond(403, '<html>')
    await pass(1_000)
    api.last.respond(403, '<html>')
    expect(await flushed).toMatchObject({ pending: 1, problem: { status: 403 } })
  })
})

describe('while the API rejects all requests', () => {
  test('one request at a time is made, and all are sent after a success', async () => {
    const { client, api, send } = fakeClient({ batchEntriesMax: 1, requestsInFlightMax: 4 })
    await send(8)
    for (const request of api.requests) unauthorized(request)
    await pass(0)
    expect(api.requests).toHaveLength(4)
    for (let minute = 1; minute <= 3; minute += 1) {
      await pass(60_000)
      expect(api.requests).toHaveLength(4 + minute)
      unauthorized(api.last)
      await pass(0)
    }
    await pass(60_000)
    expect(api.requests).toHaveLength(8)
    api.isAccepting = true
    api.last.accept()
    await pass(60_000)
    expect(client.stats).toMatchObject({ accepted: 8, queuedEntries: 0 })
  })

  test('`retryForMs` ends the retries, after the problem was reported', async () => {
    const order: string[] = []
    const { api, reported, send } = fakeClient({
      retryForMs: 30_000,
      onError: ({ kind }) => order.push(kind),
      onSettled: ({ outcome, reason }) => order.push(`${outcome}: ${reason}`),
    })
    await send(1, 1_000)
    unauthorized(api.last)
    await pass(0)
    expect(order).toEqual(['configuration', expect.stringMatching(/^retries: the API key .*\(401\)$/)])
    expect(reported.drops).toMatchObject([{ reason: 'retries' }])
  })

  test('an application that closes the client in `onError` gives the entries up', async () => {
    const { client, api, reported, send } = fakeClient({
      retryForMs: 0,
      onError: () => void client.close({ remaining: 'give-up' }),
    })
    await send(1, 1_000)
    unauthorized(api.last)
    await pass(0)
    expect(reported.drops).toMatchObject([{ reason: 'closed' }])
  })
})

describe('a close after a problem', () => {
  test.each([true, false])(
    'tries once, and sends everything if the problem was solved: %s',
    async (isSolved) => {
      const { client, api, log, send } = fakeClient({ batchEntriesMax: 1 })
      await send(3)
      for (const request of api.requests) unauthorized(request)
      await pass(5_000)
      log(2)
      api.isAccepting = isSolved
      const closed = client.close()
      await pass(0)
      if (!isSolved) unauthorized(api.last)
      expect(await closed).toMatchObject(
        isSolved
          ? { accepted: 5, dropped: 0, problem: undefined }
          : { accepted: 0, dropped: 5, problem: { status: 401 } },
      )
      expect(api.requests).toHaveLength(isSolved ? 8 : 4)
    },
  )

  test('does not try during a pause that the API asked for', async () => {
    const { client, api, send } = fakeClient({ batchEntriesMax: 1, requestsInFlightMax: 2 })
    await send(2)
    api.requests[0]?.respond(429, problemOf('rate_limited'), { 'retry-after': '60' })
    if (api.requests[1] !== undefined) unauthorized(api.requests[1])
    await pass(0)
    const closed = client.close({ timeoutMs: 5_000 })
    await pass(5_000)
    expect(await closed).toMatchObject({ dropped: 2 })
    expect(api.requests).toHaveLength(2)
  })
})
