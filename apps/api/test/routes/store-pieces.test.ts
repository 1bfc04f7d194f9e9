import { QueueUnavailableError } from '@sluice/queue'
import type { LightMyRequestResponse } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { decodeAnswer, oneScope, postLogs } from '../protocols/otlp/otlp-api.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

/** More than two chunks. */
const RECORDS = 5_000
const logs = (text: string) =>
  oneScope(...Array.from({ length: RECORDS }, (_, i) => ({ body: `${text} ${i}` })))

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

function codeOf({ statusCode, rawPayload }: LightMyRequestResponse): string {
  const { message = '' } = decodeAnswer(statusCode, rawPayload) as { message?: string }
  return message.split(':', 1)[0] ?? ''
}

/** Fails adds from the one with this number on. @returns ends this */
function failFrom(number: number): () => void {
  const { queue } = api
  const addRecorded = queue.addRecorded.bind(queue)
  let adds = 0
  queue.addRecorded = async (...args) => {
    adds += 1
    if (adds >= number) throw new QueueUnavailableError('no answer')
    return addRecorded(...args)
  }
  return () => {
    queue.addRecorded = addRecorded
  }
}

describe('a request of several chunks', () => {
  it('is stored, and releases what was held for it', async () => {
    expect((await postLogs(api, logs('a'))).statusCode).toBe(200)
    expect(new Set(api.queue.rows.map(({ message }) => message)).size).toBe(RECORDS)
    expect(api.bodies.status.bytes).toBe(0)
  })

  it('is completed by a retry with its key if a part of it was stored', async () => {
    const restore = failFrom(2)
    const headers = { 'idempotency-key': 'k' }
    const first = await postLogs(api, logs('a'), headers)
    expect(codeOf(first)).toBe('queue_unavailable')
    expect(first.headers['retry-after']).toBe('1')
    expect(api.queue.rows.length).toBeGreaterThan(0)
    expect(api.queue.rows.length).toBeLessThan(RECORDS)
    restore()
    const { queue } = api
    const second = await postLogs(api, logs('a'), headers)
    expect(second.statusCode).toBe(200)
    expect(second.headers).not.toHaveProperty('idempotency-replayed')
    expect(queue.rows).toHaveLength(RECORDS)
    expect(new Set(queue.rows.map(({ message }) => message)).size).toBe(RECORDS)
  })

  it('stores nothing if its first chunk is rejected', async () => {
    const headers = { 'idempotency-key': 'k' }
    await postLogs(api, oneScope({ body: 'small' }), headers)
    const response = await postLogs(api, logs('a'), headers)
    expect(codeOf(response)).toBe('idempotency_key_reused')
    expect(api.queue.rows).toMatchObject([{ message: 'small' }])
  })

  it('is rejected if its rows do not fit into the budget of bodies', async () => {
    await api.close()
    api = buildTestApi({ bodyLimits: { bytesMax: 3_000_000, projectBytesMax: 3_000_000 } })
    const resource = { attributes: { large: 'a'.repeat(60_000) } }
    const [{ scopeLogs } = { scopeLogs: [] }] = oneScope(...Array.from({ length: 100 }, () => ({})))
    const response = await postLogs(api, [{ resource, scopeLogs }])
    expect(codeOf(response)).toBe('overloaded')
    expect(api.queue.adds).toEqual([])
    expect(api.bodies.status.bytes).toBe(0)
  })

  it('is charged for each of its records', async () => {
    api.registry.addProject({ limits: { entriesPerSecond: 10_000, burstEntries: 12_000 } })
    api.buckets.level = { entries: 4_000, bytes: 0 }
    const response = await postLogs(api, logs('a'))
    expect(codeOf(response)).toBe('rate_limited')
    expect(api.queue.adds).toEqual([])
  })
})
