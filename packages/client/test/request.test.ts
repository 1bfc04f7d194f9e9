import { beforeEach, describe, expect, test, vi } from 'vitest'
import { type Settlement } from '../src/index.ts'
import { fakeClient } from './support/fake-client.ts'
import { pass, problemOf, refused } from './support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 10, 23) }))

const jsons = (...messages: readonly string[]): string[] =>
  messages.map((message) => JSON.stringify({ level: 'info', message }))

/** A promise, and its value as soon as there is one. */
function watch(promise: Promise<Settlement>): { value: Settlement | undefined } {
  const watched: { value: Settlement | undefined } = { value: undefined }
  void promise.then((value) => (watched.value = value))
  return watched
}

test('is sent at once, with its own key, apart from other entries, and in its order', async () => {
  const { client, api, log, send } = fakeClient()
  log(1)
  const first = watch(client.sendRequest(jsons('b', 'a'), 'file:0-17'))
  const second = watch(client.sendRequest(jsons('c'), 'file:17-25'))
  await send(1)
  expect(api.requests.map(({ key, messages }) => [key, messages])).toEqual([
    ['file:0-17', ['b', 'a']],
    ['file:17-25', ['c']],
  ])
  expect(client.stats).toMatchObject({ queuedEntries: 5, requestsInFlight: 2 })
  api.requests[1]?.accept()
  await pass(0)
  expect([first.value, second.value]).toMatchObject([undefined, { outcome: 'answered', accepted: 1 }])
  api.requests[0]?.respond(202, {
    accepted: 1,
    rejected: 1,
    errors: [{ index: 1, path: '/level', code: 'not_allowed', message: 'must be …' }],
  })
  await pass(0)
  expect(first.value).toMatchObject({
    outcome: 'answered',
    accepted: 1,
    rejected: 1,
    rejections: [{ index: 1, error: { path: '/level', code: 'not_allowed' } }],
  })
  await pass(1_000)
  expect(api.last.messages).toEqual(['1', '2'])
  await api.accept()
  expect(client.stats).toMatchObject({ accepted: 4, rejected: 1, queuedEntries: 0, queuedBytes: 0 })
})

test('is not split, since its parts would have other keys', async () => {
  const { client, api } = fakeClient()
  const sent = watch(client.sendRequest(jsons('a', 'b'), 'key'))
  await pass(0)
  api.last.respond(413, problemOf('body_too_large'))
  await pass(60_000)
  expect(api.requests).toHaveLength(1)
  const error = { code: 'body_too_large' }
  expect(sent.value).toMatchObject({
    outcome: 'rejected',
    rejected: 2,
    rejections: [
      { index: 0, error },
      { index: 1, error },
    ],
  })
})

test('is sent although two others fail again and again', async () => {
  const { client, api } = fakeClient()
  const poison: ReadonlySet<string> = new Set(['p1', 'p2'])
  for (const key of poison) void client.sendRequest(jsons('x'), key)
  await pass(0)
  const sent: { value: Settlement | undefined }[] = []
  for (let second = 0; second < 100; second += 1) {
    sent.push(watch(client.sendRequest(jsons('a'), `key${second}`)))
    for (const request of api.requests) {
      if (poison.has(request.key)) request.respond(500)
      else request.accept()
    }
    await pass(1_000)
  }
  expect(sent.filter(({ value }) => value?.outcome === 'answered').length).toBeGreaterThan(90)
})

test('resolves when it is given up', async () => {
  const { client, api } = fakeClient({ retryForMs: 0 })
  const sent = watch(client.sendRequest(jsons('a'), 'key'))
  await pass(0)
  await api.fail(refused())
  expect(sent.value).toMatchObject({ outcome: 'retries', accepted: 0, reason: 'connect ECONNREFUSED' })
  const second = watch(client.sendRequest(jsons('b'), 'key2'))
  void client.close({ timeoutMs: 0 })
  await pass(1)
  expect(second.value).toMatchObject({ outcome: 'closed' })
  expect(await client.sendRequest(jsons('c'), 'key3')).toMatchObject({ outcome: 'closed' })
  expect(client.stats).toMatchObject({ dropped: 3, queuedEntries: 0, queuedBytes: 0 })
})

test('is dropped if it does not fit into the queue', async () => {
  const { client, api, reported } = fakeClient({
    batchEntriesMax: 1,
    requestsInFlightMax: 1,
    queueEntriesMax: 2,
    overflow: 'drop-newest',
  })
  const first = watch(client.sendRequest(jsons('a', 'b'), 'key'))
  expect(await client.sendRequest(jsons('c'), 'key2')).toMatchObject({ outcome: 'overflow' })
  expect(await client.sendRequest(jsons('c', 'd', 'e'), 'key3')).toMatchObject({ outcome: 'overflow' })
  expect(reported.drops).toMatchObject([{ messages: ['c'] }, { messages: ['c', 'd', 'e'] }])
  await pass(0)
  await api.accept()
  expect(first.value).toMatchObject({ accepted: 2 })
  expect(client.stats).toMatchObject({ queuedEntries: 0, queuedBytes: 0 })
})

describe('rejects with a TypeError', () => {
  test.each<[string, readonly string[], string]>([
    ['an empty key', jsons('a'), ''],
    ['a key with a line break', jsons('a'), 'a\nb'],
    ['a key that is too long', jsons('a'), 'a'.repeat(256)],
    ['a request without entries', [], 'key'],
    ['a request with 101 entries', Array.from({ length: 101 }, () => '{}'), 'key'],
    ['a blank entry', ['{}', ' '], 'key'],
    ['a body that is too large', jsons('a'.repeat(5 * 1024 * 1024)), 'key'],
  ])('%s', async (_name, entries, key) => {
    const { client, api } = fakeClient()
    await expect(client.sendRequest(entries, key)).rejects.toThrow(TypeError)
    await pass(1_000)
    expect(api.requests).toEqual([])
    expect(client.stats).toMatchObject({ queuedEntries: 0, dropped: 0, rejected: 0 })
  })
})
