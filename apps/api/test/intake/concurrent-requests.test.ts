import type { LightMyRequestResponse } from 'fastify'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Intake } from '../../src/intake/intake.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

// Of the same length and of others: each body overwrites the rows of the one before in the scanner's memory.
const messages = ['one', 'two', 'longer than the others', '4']

const send = (message: string, key?: string): Promise<LightMyRequestResponse> =>
  api.post({ level: 'info', message }, { headers: { 'idempotency-key': key } })

/** Sends requests, and calls `release` when all of their bodies are parsed. @returns the message of each request's row, by the id in its answer */
async function storedMessages(
  sendAll: () => Promise<LightMyRequestResponse>[],
  release: () => void,
): Promise<(string | undefined)[]> {
  const parse = vi.spyOn(Intake.prototype, 'scan')
  const requests = sendAll()
  await vi.waitUntil(() => parse.mock.calls.length === requests.length)
  expect(api.queue.rows.map((row) => row['message'])).not.toContain(messages[0])
  release()
  const responses = await Promise.all(requests)
  const rows = new Map(api.queue.rows.map((row) => [row['id'], row['message']]))
  return responses.map((response) => rows.get(response.json<{ id: string }>().id))
}

/** Makes requests wait for a lease until the returned function is called. */
function holdLeases(): () => void {
  api.registry.addProject({ limits: { entriesPerSecond: 100, burstEntries: 200 } })
  api.buckets.level = { entries: 200, bytes: 0 }
  const lease = Promise.withResolvers<void>()
  api.buckets.beforeAnswer = () => lease.promise
  return lease.resolve
}

describe('each of several concurrent requests stores its own rows', () => {
  it('while they wait for a commit of idempotency keys', async () => {
    api.queue.holding = true
    const inFlight = send('in flight', 'in-flight')
    await vi.waitUntil(() => api.queue.adds.length === 1)
    const stored = await storedMessages(
      () => messages.map((message, i) => send(message, `key-${i}`)),
      () => {
        api.queue.holding = false
        api.queue.adds[0]?.confirm()
      },
    )
    expect(stored).toEqual(messages)
    expect((await inFlight).statusCode).toBe(202)
  })

  it('while they wait for a rate-limit lease', async () => {
    const release = holdLeases()
    expect(await storedMessages(() => messages.map((message) => send(message)), release)).toEqual(messages)
    expect(api.queue.rows).toHaveLength(messages.length)
  })

  it('while they wait for a rate-limit lease, and then for a commit of idempotency keys', async () => {
    const release = holdLeases()
    const sendAll = (): Promise<LightMyRequestResponse>[] =>
      messages.map((message, i) => send(message, `key-${i}`))
    expect(await storedMessages(sendAll, release)).toEqual(messages)
    expect(api.queue.rows).toHaveLength(messages.length)
  })
})
