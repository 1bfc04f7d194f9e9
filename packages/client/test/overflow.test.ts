import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient } from './support/fake-client.ts'
import { pass } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const range = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, i) => String(first + i))

/** One request is in flight with 10 entries, and the queue has room for 30 more. */
async function fill(options: Parameters<typeof fakeClient>[0]) {
  const fake = fakeClient({ requestsInFlightMax: 1, batchEntriesMax: 10, queueEntriesMax: 40, ...options })
  fake.log(10)
  await pass(0)
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
  api.last.respond(503, undefined, { 'retry-after': '60' })
  await pass(0)
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
  test('ends when a further batch fits', async () => {
    const { client, api, log } = await fill({ queueEntriesMax: 20 })
    await client.waitForRoom()
    log(1)
    let hasRoom = false
    const waiting = client.waitForRoom().then(() => {
      hasRoom = true
      return undefined
    })
    await pass(10_000)
    expect(hasRoom).toBe(false)
    api.last.accept()
    await waiting
  })

  test('for a large entry ends when that one fits', async () => {
    const { client, api } = fakeClient({
      requestsInFlightMax: 1,
      batchEntriesMax: 1,
      batchBytesMax: 1_000,
      queueBytesMax: 10_000,
    })
    client.info('x'.repeat(6_000))
    await pass(0)
    await client.waitForRoom()
    let hasRoom = false
    const waiting = client.waitForRoom(6_000).then(() => {
      hasRoom = true
      return undefined
    })
    await pass(1_000)
    expect(hasRoom).toBe(false)
    api.last.accept()
    await waiting
    // It will be dropped.
    await client.waitForRoom(1_000_000)
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
