import { QueueFullError, QueueUnavailableError } from '@sluice/queue'
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

type AddRecorded = TestApi['queue']['addRecorded']

/** Replaces new adds from the one with this number on, until the function that it returns is called. */
function replaceFrom(number: number, replacement: AddRecorded): () => void {
  const { queue } = api
  const addRecorded = queue.addRecorded.bind(queue)
  let adds = 0
  queue.addRecorded = (...args) => {
    const [, , { records }] = args
    const isNew = records.some(({ name }) => !queue.records.has(name))
    adds += isNew ? 1 : 0
    return isNew && adds >= number ? replacement(...args) : addRecorded(...args)
  }
  return () => {
    queue.addRecorded = addRecorded
  }
}

function failing(error: Error): AddRecorded {
  return async () => {
    throw error
  }
}
const unavailable = failing(new QueueUnavailableError('no answer'))

/** What stops a piece after the first one, and the Retry-After that it asks for. */
const obstacles: readonly (readonly [name: string, replacement: AddRecorded, retryAfterS: string])[] = [
  ['Redis does not answer', unavailable, '1'],
  ['Redis is full', failing(new QueueFullError('full')), '5'],
  ['the quota of keys is used up', async (_id, _chunk, { records }) => records.map(() => 90_000), '90'],
  // The record of a key that was used an hour ago expires a moment after that of the first piece.
  ['an old record', async (_id, _chunk, { records }) => records.map(() => 'x'.repeat(58)), '1'],
]

describe('a request of several chunks', () => {
  it('is stored, and releases what was held for it', async () => {
    expect((await postLogs(api, logs('a'))).statusCode).toBe(200)
    expect(new Set(api.queue.rows.map(({ message }) => message)).size).toBe(RECORDS)
    expect(api.bodies.status.bytes).toBe(0)
  })

  it('is completed by a retry with its key if a part of it was stored', async () => {
    const restore = replaceFrom(2, unavailable)
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

  it.each(obstacles)(
    'is to be retried after its first part is stored, and is then stored once: %s',
    async (_name, replacement, retryAfterS) => {
      const headers = { 'idempotency-key': 'k' }
      const restore = replaceFrom(2, replacement)
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const answer = await postLogs(api, logs('a'), headers)
        expect([answer.statusCode, codeOf(answer)]).toEqual([503, 'queue_unavailable'])
        expect(answer.headers['retry-after']).toBe(retryAfterS)
        expect(answer.body).toContain('A part of the request is stored')
        expect(api.queue.rows).toHaveLength(2_000)
        // Ends an overload.
        await api.signals.monitor.poll()
      }
      restore()
      expect((await postLogs(api, logs('a'), headers)).statusCode).toBe(200)
      expect(api.queue.rows).toHaveLength(RECORDS)
      expect(new Set(api.queue.rows.map(({ message }) => message)).size).toBe(RECORDS)
    },
  )

  it.each(obstacles.slice(1, 3))(
    'is rejected with its own error if its first part is not stored: %s',
    async (_name, replacement, retryAfterS) => {
      replaceFrom(1, replacement)
      const answer = await postLogs(api, logs('a'), { 'idempotency-key': 'k' })
      expect(codeOf(answer)).toMatch(/^(overloaded|too_many_idempotency_keys)$/)
      expect(answer.headers['retry-after']).toBe(retryAfterS)
    },
  )

  it('fails if the code of this service does, although a part is stored', async () => {
    replaceFrom(2, failing(new TypeError('a defect')))
    const answer = await postLogs(api, logs('a'), { 'idempotency-key': 'k' })
    expect([answer.statusCode, codeOf(answer)]).toEqual([500, 'internal_error'])
  })

  it('without a key is to be retried after a part is stored', async () => {
    const add = api.queue.add.bind(api.queue)
    api.queue.add = (...args) =>
      api.queue.adds.length === 0 ? add(...args) : Promise.reject(new QueueFullError('full'))
    const answer = await postLogs(api, logs('a'))
    expect([codeOf(answer), answer.headers['retry-after']]).toEqual(['queue_unavailable', '5'])
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
