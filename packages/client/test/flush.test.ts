import { beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClient, sending } from './support/fake-client.ts'
import { pass, problemOf, refused } from './support/fake-fetch.ts'
import { heapBytes } from './support/heap-bytes.ts'

beforeEach(() => void vi.useFakeTimers())

describe('flush', () => {
  test('waits for the entries in flight, delayed and in the queue, but not for later ones', async () => {
    const { client, api, log, send } = fakeClient({ batchEntriesMax: 1, requestsInFlightMax: 2 })
    await send(3)
    api.requests[0]?.fail(refused())
    await pass(0)
    const flushed = client.flush()
    log(1)
    await pass(250)
    for (let i = 0; i < 3; i += 1) {
      for (const request of api.requests) if (request.messages[0] !== '4') request.accept()
      await pass(0)
    }
    expect(await flushed).toMatchObject({ accepted: 3, pending: 0 })
    expect(client.stats.queuedEntries).toBe(1)
  })

  test('reports what is pending after a timeout, counts the half of a split request, and changes nothing', async () => {
    const { client, api, log } = fakeClient()
    log(3)
    const flushed = client.flush({ timeoutMs: 5_000 })
    await pass(0)
    await api.respond(413)
    api.requests[1]?.accept()
    await pass(5_000)
    expect(await flushed).toMatchObject({ accepted: 2, pending: 1 })
    await api.accept()
    expect(client.stats.accepted).toBe(3)
  })

  test('that a hook calls at the end of a request does not wait for that one', async () => {
    const results: unknown[] = []
    const onRejected = (): void => void fake.client.flush().then((result) => results.push(result))
    const fake = await sending(1, { onRejected })
    await fake.api.respond(400, problemOf('invalid_json'))
    expect(results).toMatchObject([{ rejected: 0, pending: 0 }])
  })

  test('in a loop during an outage needs no memory for those that are over', async () => {
    const { client, log } = fakeClient()
    log(9_000)
    const before = heapBytes()
    for (let i = 0; i < 1_000; i += 1) {
      const flushed = client.flush({ timeoutMs: 1 })
      await pass(1)
      expect(await flushed).toMatchObject({ pending: 9_000 })
    }
    // 8 MB, if each flush waits for the promise of each request.
    expect(heapBytes() - before).toBeLessThan(3_000_000)
  })

  test('in a loop during an outage does not make small requests', async () => {
    const { client, api, send } = await sending(1)
    await api.respond(503, undefined, { 'retry-after': '60' })
    for (let i = 0; i < 100; i += 1) {
      await send(1, 10)
      void client.flush()
    }
    api.isAccepting = true
    await pass(60_000)
    expect(api.requests.map(({ messages }) => messages.length)).toEqual([1, 100, 1])
  })
})

describe('close', () => {
  const alone = { requestsInFlightMax: 1, batchEntriesMax: 1 }

  test('does not wait for the end of a long pause, and begins with short ones again', async () => {
    const { client, api, send } = fakeClient(alone, () => 0.99)
    await send(1)
    for (let failures = 0; failures < 10; failures += 1) {
      api.last.fail(refused())
      await pass(30_000)
    }
    api.last.fail(refused())
    const closed = client.close({ timeoutMs: 3_000 })
    await pass(0)
    api.last.fail(refused())
    await pass(1_000)
    api.last.accept()
    expect(await closed).toMatchObject({ accepted: 1, dropped: 0 })
  })

  test('sends what is left, and drops what is logged later', async () => {
    const { client, api, reported, log, send } = fakeClient()
    log(2)
    const closed = client.close()
    await send(1)
    api.last.accept()
    expect(await closed).toMatchObject({ accepted: 2 })
    log(1)
    expect(reported.drops.map(({ messages }) => messages)).toEqual([['3'], ['4']])
    expect(client.stats).toMatchObject({ accepted: 2, dropped: 2 })
  })

  test('retries until its timeout, then aborts the request in flight and drops the rest', async () => {
    const { client, api, reported, log } = fakeClient({ requestsInFlightMax: 1, batchEntriesMax: 2 })
    log(3)
    const closed = client.close({ timeoutMs: 1_000 })
    await pass(0)
    api.last.fail(refused())
    await pass(250)
    const [, second] = api.requests
    await pass(749)
    expect(second?.signal.aborted).toBe(false)
    await pass(1)
    expect(second?.signal.aborted).toBe(true)
    expect(await closed).toMatchObject({ accepted: 0, dropped: 3, pending: 0 })
    const dropped = reported.drops.flatMap(({ messages }) => messages)
    expect(new Set(dropped)).toEqual(new Set(['1', '2', '3']))
    expect(client.stats).toMatchObject({ queuedEntries: 0, queuedBytes: 0, requestsInFlight: 0 })
    await pass(60_000)
    expect(api.requests).toHaveLength(2)
  })

  test('can be shortened by a further call', async () => {
    const { client, api, log } = fakeClient(alone)
    log(2)
    const closed = client.close({ timeoutMs: 60_000 })
    await pass(0)
    void client.close()
    api.last.respond(503, undefined, { 'retry-after': '30' })
    await pass(1_000)
    expect(client.stats.queuedEntries).toBe(2)
    const shortened = client.close({ remaining: 'try-once' })
    expect(await closed).toMatchObject({ dropped: 2 })
    expect(await shortened).toEqual(await closed)
  })

  test('awaits the requests in flight although the API has rejected another one for its key', async () => {
    const { client, api, log } = fakeClient({ requestsInFlightMax: 2, batchEntriesMax: 1 })
    log(3)
    const closed = client.close()
    await pass(0)
    api.requests[0]?.respond(401, problemOf('unauthorized'))
    await pass(5_000)
    expect(api.requests[1]?.signal.aborted).toBe(false)
    api.requests[1]?.accept()
    expect(await closed).toMatchObject({ accepted: 1, dropped: 2 })
  })

  test('with try-once sends each entry, and gives up at the first failure', async () => {
    const { client, api, reported, log } = fakeClient(alone)
    log(3)
    const closed = client.close({ remaining: 'try-once' })
    await pass(0)
    await api.accept()
    await api.fail(refused())
    expect(await closed).toMatchObject({ accepted: 1, dropped: 2 })
    expect(api.messages).toEqual([['1'], ['2']])
    expect(reported.settlements).toMatchObject([
      { outcome: 'answered', reason: undefined },
      { outcome: 'closed', reason: 'connect ECONNREFUSED' },
      { outcome: 'closed', reason: undefined },
    ])
  })

  test('with give-up only awaits what is in flight', async () => {
    const { client, api, send } = fakeClient(alone)
    await send(3)
    const closed = client.close({ remaining: 'give-up' })
    await pass(0)
    api.last.accept()
    expect(await closed).toMatchObject({ accepted: 1, dropped: 2 })
    expect(api.requests).toHaveLength(1)
  })
})
