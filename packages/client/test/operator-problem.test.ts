import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient } from './support/fake-client.ts'
import type { FakeRequest } from './support/fake-fetch.ts'
import { pass, problemOf } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 10, 23) }))
afterEach(() => void vi.useRealTimers())

const unauthorized = (request: FakeRequest): void => request.respond(401, problemOf('unauthorized'))

/** Rejects the entry 1, as a firewall would do that does not like its text, and accepts all others. */
function answerLikeAFirewall(requests: readonly FakeRequest[]): void {
  for (const request of requests) {
    if (request.messages.includes('1')) request.respond(403, '<html>')
    else request.accept()
  }
}

describe('a request that is rejected while others succeed', () => {
  test('is rejected after the third time, and stops the others for a minute at most', async () => {
    const { client, api, reported, log } = fakeClient({ batchEntriesMax: 1 })
    const queued: number[] = []
    log(1)
    await pass(0)
    answerLikeAFirewall(api.requests)
    await pass(0)
    for (let second = 1; second <= 240 && reported.rejections.length === 0; second += 1) {
      log(1)
      await pass(1_000)
      // Each answer may start further requests.
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

  test('does not stop the others, and is not reported, if one has succeeded before', async () => {
    const { client, api, reported, log } = fakeClient({ batchEntriesMax: 1 })
    api.isAccepting = true
    log(1)
    await pass(0)
    api.isAccepting = false
    log(1)
    await pass(0)
    const blocked = api.last
    blocked.respond(403, '<html>')
    api.isAccepting = true
    log(10)
    await pass(0)
    expect(client.stats).toMatchObject({ accepted: 11, queuedEntries: 1 })
    api.isAccepting = false
    const blockAgain = async (afterMs: number): Promise<void> => {
      await pass(afterMs)
      expect(api.last.key).toBe(blocked.key)
      api.last.respond(403, '<html>')
      api.isAccepting = true
      log(1)
      await pass(0)
      api.isAccepting = false
    }
    await blockAgain(1_000)
    await blockAgain(60_000)
    expect(reported.rejections).toMatchObject([{ error: { code: 'http_403' } }])
    expect(client.stats).toMatchObject({ accepted: 13, rejected: 1, queuedEntries: 0 })
    expect(reported.errors).toEqual([])
  })

  test('is rejected with a 400 that is not from the API, after the third time', async () => {
    const { api, reported, log } = fakeClient({ batchEntriesMax: 1 })
    for (const waitMs of [0, 1_000, 60_000]) {
      api.isAccepting = true
      log(1)
      await pass(0)
      api.isAccepting = false
      if (waitMs === 0) log(1)
      await pass(waitMs)
      api.last.respond(400, '<html>')
      await pass(0)
    }
    expect(reported.rejections).toMatchObject([{ error: { code: 'http_400' } }])
    expect(api.requests.filter(({ key }) => key === api.last.key)).toHaveLength(3)
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
    const { api, reported, log } = fakeClient()
    api.isAccepting = true
    log(1)
    await pass(1_000)
    api.isAccepting = false
    log(1)
    await pass(1_000)
    unauthorized(api.last)
    await pass(0)
    expect(reported.errors).toMatchObject([{ kind: 'configuration', status: 401 }])
  })

  test('by something else, the second is reported, and all sending pauses', async () => {
    const { api, reported, log } = fakeClient({ batchEntriesMax: 1 })
    api.isAccepting = true
    log(1)
    await pass(0)
    api.isAccepting = false
    log(3)
    await pass(0)
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
    const { client, api, log } = fakeClient()
    api.isAccepting = true
    log(1)
    await client.flush()
    api.isAccepting = false
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
    const { client, api, log } = fakeClient({ batchEntriesMax: 1, requestsInFlightMax: 4 })
    log(8)
    await pass(0)
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
    const { api, reported, log } = fakeClient({
      retryForMs: 30_000,
      onError: ({ kind }) => order.push(kind),
      onSettled: ({ outcome, reason }) => order.push(`${outcome}: ${reason}`),
    })
    log(1)
    await pass(1_000)
    unauthorized(api.last)
    await pass(0)
    expect(order).toEqual(['configuration', expect.stringMatching(/^retries: the API key .*\(401\)$/)])
    expect(reported.drops).toMatchObject([{ reason: 'retries' }])
  })

  test('an application that closes the client in `onError` gives the entries up', async () => {
    const { client, api, reported, log } = fakeClient({
      retryForMs: 0,
      onError: () => void client.close({ remaining: 'give-up' }),
    })
    log(1)
    await pass(1_000)
    unauthorized(api.last)
    await pass(0)
    expect(reported.drops).toMatchObject([{ reason: 'closed' }])
  })
})

describe('a close after a problem', () => {
  test('tries once, and sends everything if the problem was solved', async () => {
    const { client, api, log } = fakeClient({ batchEntriesMax: 1 })
    log(3)
    await pass(0)
    for (const request of api.requests) unauthorized(request)
    await pass(5_000)
    log(2)
    api.isAccepting = true
    const closed = client.close()
    await pass(0)
    expect(await closed).toMatchObject({ accepted: 5, dropped: 0, problem: undefined })
  })

  test('tries once, and gives everything up if it was not', async () => {
    const { client, api, log } = fakeClient({ batchEntriesMax: 1 })
    log(3)
    await pass(0)
    for (const request of api.requests) unauthorized(request)
    await pass(5_000)
    const closed = client.close()
    await pass(0)
    expect(api.requests).toHaveLength(4)
    unauthorized(api.last)
    expect(await closed).toMatchObject({ accepted: 0, dropped: 3, problem: { status: 401 } })
    expect(api.requests).toHaveLength(4)
  })

  test('does not try during a pause that the API asked for', async () => {
    const { client, api, log } = fakeClient({ batchEntriesMax: 1, requestsInFlightMax: 2 })
    log(2)
    await pass(0)
    api.requests[0]?.respond(429, problemOf('rate_limited'), { 'retry-after': '60' })
    if (api.requests[1] !== undefined) unauthorized(api.requests[1])
    await pass(0)
    const closed = client.close({ timeoutMs: 5_000 })
    await pass(5_000)
    expect(await closed).toMatchObject({ dropped: 2 })
    expect(api.requests).toHaveLength(2)
  })
})

test('an empty text is rejected at once', async () => {
  const { client, api, reported } = fakeClient()
  client.sendJson('')
  client.sendJson(' \n', 'tag')
  await pass(1_000)
  expect(api.requests).toEqual([])
  expect(reported.rejections).toMatchObject([
    { entry: '', error: { code: 'invalid_json' } },
    { entry: ' \n', error: { code: 'invalid_json' }, tag: 'tag' },
  ])
})
