import { beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient, sending } from './support/fake-client.ts'
import { pass } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers())

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
    expect(api.messages).toEqual([['1', '2']])
  })

  test('when it has the most entries, at once but not within the call', async () => {
    const { api, log } = fakeClient({ batchEntriesMax: 3 })
    log(7)
    expect(api.requests).toEqual([])
    await pass(0)
    expect(api.messages).toEqual([
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
    expect(api.messages).toEqual([['1', '2']])
    api.last.accept()
    expect(await flushed).toMatchObject({ accepted: 2, pending: 0 })
  })
})

describe('requests in flight', () => {
  test('are limited, and gather further entries meanwhile', async () => {
    const { api, send } = fakeClient({ requestsInFlightMax: 2, batchEntriesMax: 100 })
    for (let i = 0; i < 5; i += 1) {
      await send(10, 1_000)
    }
    expect(api.messages).toEqual([range(1, 10), range(11, 20)])
    api.requests[1]?.accept()
    await pass(0)
    expect(api.requests[2]?.messages).toEqual(range(21, 50))
  })

  test('that are slow do not delay others', async () => {
    const { api, send } = await sending(1, { requestsInFlightMax: 2 })
    const [slow] = api.requests
    for (let i = 2; i < 10; i += 1) {
      await send(1, 1_000)
      expect(api.last.messages).toEqual([String(i)])
      api.last.accept()
    }
    expect(slow?.signal.aborted).toBe(false)
  })
})

test('while all requests are in flight, no timer runs for the next one', async () => {
  const { send } = fakeClient({ requestsInFlightMax: 1, batchEntriesMax: 1 })
  await send(3)
  const { setTimeout: fake } = globalThis
  let started = 0
  // Not a spy of vitest, which is restored after the timers are, and would put the fake one back.
  globalThis.setTimeout = Object.assign((...args: Parameters<typeof fake>) => {
    started += 1
    return fake(...args)
  }, fake)
  await pass(20_000)
  globalThis.setTimeout = fake
  expect(started).toBe(0)
})

test('each request has its own random idempotency key', async () => {
  const { api, send } = fakeClient({ batchEntriesMax: 1 })
  await send(3)
  const keys = api.requests.map(({ key }) => key)
  expect(new Set(keys).size).toBe(3)
  for (const key of keys) expect(key).toMatch(/^[0-9a-f-]{36}$/)
})

test('JSON is sent as it is, on one line', async () => {
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

/** One request is in flight with 10 entries, and the queue has room for 30 more. */
async function fill(options: Parameters<typeof fakeClient>[0]) {
  const fake = fakeClient({ requestsInFlightMax: 1, batchEntriesMax: 10, queueEntriesMax: 40, ...options })
  await fake.send(10)
  return fake
}

test('a queue without room for a request next to those in flight is rejected', () => {
  expect(() => fakeClient({ requestsInFlightMax: 4, batchEntriesMax: 10, queueEntriesMax: 49 })).toThrow(
    '`queueEntriesMax` must be an integer from 50 to',
  )
})

describe('a full queue drops', () => {
  test('the oldest request that is not in flight, by default', async () => {
    const { client, api, reported, log } = await fill({})
    log(30)
    expect(reported.drops).toEqual([])
    log(1)
    expect(reported.drops).toEqual([{ messages: range(11, 20), reason: 'overflow' }])
    expect(client.stats).toMatchObject({ dropped: 10, queuedEntries: 31 })
    api.isAccepting = true
    api.last.accept()
    expect(await closeNow(client)).toMatchObject({ accepted: 31, dropped: 0 })
    expect(api.requests.flatMap(({ messages }) => messages)).toEqual([...range(1, 10), ...range(21, 41)])
  })

  test('the newest entries, with drop-newest', async () => {
    const { client, api, reported, log } = await fill({ overflow: 'drop-newest' })
    log(32)
    expect(reported.drops).toEqual([
      { messages: ['41'], reason: 'overflow' },
      { messages: ['42'], reason: 'overflow' },
    ])
    api.isAccepting = true
    api.last.accept()
    expect(await closeNow(client)).toMatchObject({ accepted: 40, dropped: 0 })
    expect(api.requests.flatMap(({ messages }) => messages)).toEqual(range(1, 40))
  })

  test('when it has too many bytes', async () => {
    const { client, reported } = await fill({
      queueEntriesMax: 10_000,
      queueBytesMax: 20_000,
      batchBytesMax: 4_000,
    })
    for (let i = 0; i < 100; i += 1) client.info('x'.repeat(1_000))
    expect(client.stats.queuedBytes).toBeLessThanOrEqual(20_000)
    expect(client.stats.queuedBytes).toBeGreaterThan(15_000)
    expect(client.stats.dropped + client.stats.queuedEntries).toBe(110)
    expect(reported.drops.length).toBeGreaterThan(10)
  })

  test('only an entry that has more bytes than the queue', async () => {
    const { client, reported, log } = await fill({ queueBytesMax: 20_000, batchBytesMax: 4_000 })
    log(5)
    client.info('x'.repeat(20_000))
    expect(reported.drops).toHaveLength(1)
    expect(client.stats).toMatchObject({ dropped: 1, queuedEntries: 15 })
  })
})

test('a retried request counts as the oldest one', async () => {
  const { api, reported, log } = await fill({})
  await api.respond(503, undefined, { 'retry-after': '60' })
  log(31)
  expect(reported.drops).toEqual([{ messages: range(1, 10), reason: 'overflow' }])
})

test('the limits hold while the API is unavailable', async () => {
  const { client, api, log } = fakeClient({ queueEntriesMax: 1_000 })
  for (let i = 0; i < 100; i += 1) {
    log(500)
    expect(client.stats.queuedEntries).toBeLessThanOrEqual(1_000)
    for (const request of api.requests) request.respond(500)
    await pass(1_000)
  }
  const { queuedEntries, dropped } = client.stats
  expect(queuedEntries + dropped).toBe(50_000)
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

  test('ends at once for an entry that will be dropped', async () => {
    await expect(fakeClient().client.waitForRoom(1_000_000_000)).resolves.toBeUndefined()
  })

  test('ends when the client is closed', async () => {
    const { client, log } = await fill({ queueEntriesMax: 20 })
    log(1)
    const waiting = client.waitForRoom()
    await closeNow(client)
    await expect(waiting).resolves.toBeUndefined()
  })
})

async function closeNow(client: ReturnType<typeof fakeClient>['client']) {
  const closed = client.close({ timeoutMs: 1_000 })
  await pass(1_000)
  return closed
}
