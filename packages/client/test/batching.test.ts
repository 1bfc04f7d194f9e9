import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient } from './support/fake-client.ts'
import { pass } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const range = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, i) => String(first + i))

describe('a request is sent', () => {
  test('when its first entry has waited for the interval', async () => {
    const { api, log } = fakeClient({ flushIntervalMs: 1_000 })
    log(1)
    await pass(500)
    log(1)
    await pass(499)
    expect(api.requests).toEqual([])
    await pass(2)
    expect(api.requests.map(({ messages }) => messages)).toEqual([['1', '2']])
  })

  test('when it has the most entries, at once but not within the call', async () => {
    const { api, log } = fakeClient({ batchEntriesMax: 3 })
    log(7)
    expect(api.requests).toEqual([])
    await pass(0)
    expect(api.requests.map(({ messages }) => messages)).toEqual([
      ['1', '2', '3'],
      ['4', '5', '6'],
    ])
    await pass(1_000)
    expect(api.requests[2]?.messages).toEqual(['7'])
  })

  test('before it has more than the most bytes', async () => {
    const { client, api } = fakeClient({ batchBytesMax: 1_000 })
    for (let i = 0; i < 10; i += 1) client.sendJson(`{"level":"info","message":"${'x'.repeat(270)}"}`)
    await pass(1_000)
    expect(api.requests.map(({ messages }) => messages.length)).toEqual([3, 3, 3, 1])
    expect(api.requests[0]?.bytes).toBeLessThanOrEqual(1_000)
    expect(api.requests[0]?.bytes).toBeGreaterThan(900)
  })

  test('with one entry alone, if that one has more bytes', async () => {
    const { client, api } = fakeClient({ batchBytesMax: 1_000 })
    client.info('small')
    client.info('x'.repeat(2_000))
    client.info('small')
    await pass(1_000)
    expect(api.requests.map(({ messages }) => messages.length)).toEqual([1, 1, 1])
  })

  test('at once after a flush', async () => {
    const { client, api, log } = fakeClient()
    log(2)
    const flushed = client.flush()
    await pass(0)
    expect(api.requests.map(({ messages }) => messages)).toEqual([['1', '2']])
    api.last.accept()
    expect(await flushed).toMatchObject({ accepted: 2, pending: 0 })
  })
})

describe('requests in flight', () => {
  test('are limited, and gather further entries meanwhile', async () => {
    const { api, log } = fakeClient({ requestsInFlightMax: 2, batchEntriesMax: 100 })
    for (let i = 0; i < 5; i += 1) {
      log(10)
      await pass(1_000)
    }
    expect(api.requests.map(({ messages }) => messages)).toEqual([range(1, 10), range(11, 20)])
    api.requests[1]?.accept()
    await pass(0)
    expect(api.requests[2]?.messages).toEqual(range(21, 50))
  })

  test('that are slow do not delay others', async () => {
    const { api, log } = fakeClient({ requestsInFlightMax: 2 })
    log(1)
    await pass(1_000)
    const [slow] = api.requests
    for (let i = 2; i < 10; i += 1) {
      log(1)
      await pass(1_000)
      expect(api.last.messages).toEqual([String(i)])
      api.last.accept()
    }
    expect(slow?.signal.aborted).toBe(false)
  })
})

test('while all requests are in flight, no timer runs for the next one', async () => {
  const { log } = fakeClient({ requestsInFlightMax: 1, batchEntriesMax: 1 })
  log(3)
  await pass(0)
  const start = vi.spyOn(globalThis, 'setTimeout')
  await pass(20_000)
  expect(start).not.toHaveBeenCalled()
})

test('each request has its own random idempotency key', async () => {
  const { api, log } = fakeClient({ batchEntriesMax: 1 })
  log(3)
  await pass(0)
  const keys = api.requests.map(({ key }) => key)
  expect(new Set(keys).size).toBe(3)
  for (const key of keys) expect(key).toMatch(/^[0-9a-f]{32}$/)
})

test('JSON text is sent as it is, on one line', async () => {
  const bodies: string[] = []
  const { client } = fakeClient({
    fetch: async (_url, init) => {
      bodies.push(new TextDecoder().decode(init.body))
      return Response.json({ accepted: 1, rejected: 0 }, { status: 202 })
    },
  })
  client.sendJson('{"level":"info",\r\n "message":"a\\n",  "metadata":{"n":12345678901234567890}}')
  await pass(1_000)
  expect(bodies).toEqual([
    '{"logs":[{"level":"info",  "message":"a\\n",  "metadata":{"n":12345678901234567890}}]}',
  ])
})
