import { beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient, sending } from './support/fake-client.ts'
import { pass } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers())

const range = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, i) => String(first + i))

describe('a request is sent', () => {
  test('when its first entry has waited for the interval', async () => {
    const { api, send } = fakeClient({ flushIntervalMs: 1_000 })
    await send(1, 500)
    await send(1, 499)
    expect(api.requests).toEqual([])
    await pass(2)
    expect(api.messages).toEqual([['1', '2']])
  })

  test('when it has the most entries, at once but not within the call, each with its own random key', async () => {
    const { api, log } = fakeClient({ batchEntriesMax: 3 })
    log(7)
    expect(api.requests).toEqual([])
    await pass(0)
    expect(api.messages).toEqual([range(1, 3), range(4, 6)])
    await pass(1_000)
    expect(api.last.messages).toEqual(['7'])
    const keys = api.requests.map(({ key }) => key)
    expect(new Set(keys).size).toBe(3)
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{32}$/)
  })

  test('before it has more than the most bytes, or with one entry alone that has more', async () => {
    const { client, api } = fakeClient({ batchBytesMax: 1_000 })
    for (let i = 0; i < 7; i += 1) client.sendJson(`{"level":"info","message":"${'x'.repeat(270)}"}`)
    client.info('x'.repeat(2_000))
    client.info('small')
    await pass(0)
    expect(api.requests.map(({ messages }) => messages.length)).toEqual([3, 3, 1, 1])
    expect(api.requests[0]?.body.length).toBeLessThanOrEqual(1_000)
  })
})

test('requests in flight are limited, and gather further entries meanwhile', async () => {
  const { api, send } = fakeClient({ requestsInFlightMax: 2, batchEntriesMax: 100 })
  for (let i = 0; i < 5; i += 1) await send(10, 1_000)
  expect(api.messages).toEqual([range(1, 10), range(11, 20)])
  await api.accept()
  expect(api.last.messages).toEqual(range(21, 50))
})

test('while all requests are in flight, no timer runs for the next one', async () => {
  const { send } = fakeClient({ requestsInFlightMax: 1, batchEntriesMax: 1 })
  await send(1)
  const timers = vi.getTimerCount()
  await send(2, 20_000)
  expect(vi.getTimerCount()).toBe(timers)
})

test('JSON is sent as it is, on one line', async () => {
  const { client, api } = fakeClient()
  client.sendJson('{"level":"info",\r\n "message":"a\\n",  "metadata":{"n":12345678901234567890}}')
  await pass(1_000)
  const json = '{"level":"info",  "message":"a\\n",  "metadata":{"n":12345678901234567890}}'
  expect(api.last.body).toBe(`{"logs":[${json}]}`)
})

/** One request is in flight with 10 entries, and the queue has room for 30 more. */
const fill = (options: Parameters<typeof fakeClient>[0] = {}) =>
  sending(10, { requestsInFlightMax: 1, batchEntriesMax: 10, queueEntriesMax: 40, ...options })

describe('a full queue drops', () => {
  test('the oldest request that is not in flight, by default', async () => {
    const { client, api, reported, log, close } = await fill()
    log(30)
    expect(reported.drops).toEqual([])
    log(1)
    expect(reported.drops).toEqual([{ messages: range(11, 20), reason: 'overflow' }])
    expect(client.stats).toMatchObject({ dropped: 10, queuedEntries: 31 })
    api.isAccepting = true
    api.last.accept()
    expect(await close({ timeoutMs: 1_000 })).toMatchObject({ accepted: 31, dropped: 0 })
    expect(api.messages.flat()).toEqual([...range(1, 10), ...range(21, 41)])
  })

  test('the newest entries, with drop-newest', async () => {
    const { client, reported, log } = await fill({ overflow: 'drop-newest' })
    log(32)
    expect(reported.drops).toMatchObject([{ messages: ['41'], reason: 'overflow' }, { messages: ['42'] }])
    expect(client.stats).toMatchObject({ dropped: 2, queuedEntries: 40 })
  })

  test('the oldest request when it has too many bytes, and an entry with more bytes than the queue', async () => {
    const { client, reported } = await fill({ queueBytesMax: 20_000, batchBytesMax: 4_000 })
    for (let i = 0; i < 100; i += 1) client.info('x'.repeat(1_000))
    expect(client.stats.queuedBytes).toBeLessThanOrEqual(20_000)
    expect(client.stats.queuedBytes).toBeGreaterThan(15_000)
    expect(client.stats.dropped + client.stats.queuedEntries).toBe(110)
    const { length } = reported.drops
    expect(length).toBeGreaterThan(10)
    client.info('x'.repeat(20_000))
    expect(reported.drops.slice(length)).toMatchObject([{ messages: { length: 1 } }])
  })

  test('a request that is retried first: it is the oldest', async () => {
    const { api, reported, log } = await fill()
    await api.respond(503, undefined, { 'retry-after': '60' })
    log(31)
    expect(reported.drops).toEqual([{ messages: range(1, 10), reason: 'overflow' }])
  })
})

test('the limits hold while the API is unavailable', async () => {
  const { client, api, log } = fakeClient({ queueEntriesMax: 1_000 })
  for (let i = 0; i < 100; i += 1) {
    log(500)
    expect(client.stats.queuedEntries).toBeLessThanOrEqual(1_000)
    api.respondAll(500)
    await pass(1_000)
  }
  expect(client.stats.queuedEntries + client.stats.dropped).toBe(50_000)
})

describe('waiting for room', () => {
  const small = { requestsInFlightMax: 1, batchEntriesMax: 1, batchBytesMax: 1_000, queueBytesMax: 10_000 }

  test.each([
    ['a further batch', 0, { ...small, queueEntriesMax: 2 }],
    ['a large entry', 6_000, small],
  ])('for %s ends when there is room', async (_name, bytes, options) => {
    const { client, api } = fakeClient(options)
    client.info('x'.repeat(6_000))
    await pass(0)
    await client.waitForRoom()
    if (bytes === 0) client.info('second')
    let hasRoom = false
    void client.waitForRoom(bytes).then(() => (hasRoom = true))
    await pass(1_000)
    expect(hasRoom).toBe(false)
    await api.accept()
    expect(hasRoom).toBe(true)
  })

  test('ends at once for an entry that will be dropped, and when the client is closed', async () => {
    await fakeClient().client.waitForRoom(1_000_000_000)
    const { client, log, close } = await fill({ queueEntriesMax: 20 })
    log(1)
    const waiting = client.waitForRoom()
    await close()
    await expect(waiting).resolves.toBeUndefined()
  })
})
