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

const ENTRIES = 20

const send = (message: string, key?: string): Promise<LightMyRequestResponse> =>
  api.post(
    Array.from({ length: ENTRIES }, () => ({ level: 'info', message })),
    {
      headers: { 'idempotency-key': key },
    },
  )

const count = (message: string): number => api.queue.rows.filter((row) => row['message'] === message).length

/** Sends requests, and calls `release` when all of their bodies are scanned. @returns how often each message is stored */
async function storedMessages(
  sendAll: () => Promise<LightMyRequestResponse>[],
  release: () => void,
): Promise<number[]> {
  const scan = vi.spyOn(Intake.prototype, 'scan')
  const requests = sendAll()
  await vi.waitUntil(() => scan.mock.calls.length === requests.length, { interval: 1 })
  release()
  const responses = await Promise.all(requests)
  expect(responses.map(({ statusCode }) => statusCode)).toEqual([202, 202, 202, 202])
  return messages.map(count)
}

/**
 * Lets requests pay for their bytes, and makes them wait for the lease of their entries until the returned function is called. On a slow
 * machine, some pass on credit before.
 */
function holdLeases(): () => void {
  api.registry.addProject({ limits: { entriesPerSecond: 100, burstEntries: 200 } })
  api.buckets.level = { entries: 200, bytes: 0 }
  const lease = Promise.withResolvers<void>()
  api.buckets.beforeAnswer = () => (api.buckets.requests.length === 1 ? Promise.resolve() : lease.promise)
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
        expect(messages.map(count)).toEqual([0, 0, 0, 0])
        api.queue.holding = false
        api.queue.adds[0]?.confirm()
      },
    )
    expect(stored).toEqual(messages.map(() => ENTRIES))
    expect((await inFlight).statusCode).toBe(202)
  })

  it('while they wait for a rate-limit lease', async () => {
    const release = holdLeases()
    const stored = await storedMessages(() => messages.map((message) => send(message)), release)
    expect(stored).toEqual(messages.map(() => ENTRIES))
  })

  it('while they wait for a rate-limit lease, and then for a commit of idempotency keys', async () => {
    const release = holdLeases()
    const sendAll = (): Promise<LightMyRequestResponse>[] =>
      messages.map((message, i) => send(message, `key-${i}`))
    expect(await storedMessages(sendAll, release)).toEqual(messages.map(() => ENTRIES))
  })
})
