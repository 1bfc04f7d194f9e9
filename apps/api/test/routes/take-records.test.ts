import { encodeLogs } from '@sluice/harness/otlp-logs'
import { QueueFullError, QueueUnavailableError } from '@sluice/queue'
import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { chunkLimits } from '../../src/chunks/chunk-writer.ts'
import { oneScope } from '../protocols/otlp/otlp-api.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

// The bulk API of Elasticsearch stands for all protocols.
const url = '/elasticsearch/_bulk'
let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

const bulk = (body: string, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> =>
  api.post(body, { url, headers })
const documents = (count: number, more = ''): string =>
  Array.from({ length: count }, (_, i) => `{"index":{}}\n{"message":"${i}"${more}}\n`).join('')
/** Of the rows that the queue has. */
const messages = (): number[] =>
  api.queue.rows.map(({ message }) => Number(message)).toSorted((a, b) => a - b)
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

/** More documents than two chunks have rows. */
const MANY = 2 * chunkLimits.rowsMax + 500

/** Fails the adds with these numbers, which count from 0. */
function failAdds(error: Error, ...failing: readonly number[]): void {
  const add = api.queue.add.bind(api.queue)
  let adds = -1
  api.queue.add = async (...args) => {
    adds += 1
    if (failing.includes(adds)) throw error
    return add(...args)
  }
}

describe('a request with more rows than a chunk', () => {
  it('is stored in pieces', async () => {
    expect((await bulk(documents(MANY))).statusCode).toBe(200)
    expect(api.queue.adds.map(({ lines }) => lines.length)).toEqual([
      chunkLimits.rowsMax,
      chunkLimits.rowsMax,
      500,
    ])
    expect(messages()).toEqual(numbers(MANY))
    expect(api.counts.accepted).toBe(MANY)
  })

  it('is stored in pieces of bytes', async () => {
    expect((await bulk(documents(30, `,"n":"${'x'.repeat(60_000)}"`))).statusCode).toBe(200)
    expect(api.queue.adds.length).toBeGreaterThan(1)
    expect(messages()).toEqual(numbers(30))
  })

  it('is to be retried if a piece is not stored, although others are', async () => {
    failAdds(new QueueFullError('full'), 1)
    const answer = await bulk(documents(MANY))
    expect(answer.statusCode).toBe(429)
    expect(api.counts.rejected).toContainEqual([['queue_unavailable'], 1])
    expect(api.queue.rows.length).toBe(MANY - chunkLimits.rowsMax)
    expect(api.counts.accepted).toBe(0)
  })

  it('has the error of its first piece if nothing is stored', async () => {
    failAdds(new QueueFullError('full'), 0, 1, 2)
    expect((await bulk(documents(MANY))).statusCode).toBe(429)
    expect(api.counts.rejected).toContainEqual([['overloaded'], 1])
  })
})

describe('an idempotency key', () => {
  const headers = { 'idempotency-key': 'k' }

  it('makes a request stored once', async () => {
    const first = await bulk(documents(3), headers)
    const second = await bulk(documents(3), headers)
    expect(second.body).toBe(first.body)
    expect(first.headers).not.toHaveProperty('idempotency-replayed')
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(messages()).toEqual(numbers(3))
    expect([api.counts.accepted, api.counts.replays]).toEqual([3, 1])
  })

  it('makes each piece stored once, whichever was stored at first', async () => {
    failAdds(new QueueUnavailableError('no answer'), 2)
    expect((await bulk(documents(MANY), headers)).statusCode).toBe(429)
    expect(api.queue.rows.length).toBeLessThan(MANY)
    const retry = await bulk(documents(MANY), headers)
    expect(retry.statusCode).toBe(200)
    expect(retry.headers).not.toHaveProperty('idempotency-replayed')
    expect(messages()).toEqual(numbers(MANY))
    expect((await bulk(documents(MANY), headers)).headers['idempotency-replayed']).toBe('true')
    expect(messages()).toEqual(numbers(MANY))
  })

  it.each([
    [MANY, 1],
    [1, MANY],
    [MANY, MANY + 1],
  ])(
    'of another body is rejected before anything is stored: %i and then %i documents',
    async (first, second) => {
      await bulk(documents(first), headers)
      const answer = await bulk(documents(second), headers)
      expect(answer.statusCode).toBe(422)
      expect(api.queue.rows.length).toBe(first)
    },
  )

  it('of a request without valid records has no record', async () => {
    const invalid = '{"index":{}}\n7\n'
    for (let count = 0; count < 2; count += 1) {
      const answer = await bulk(invalid, headers)
      expect(answer.statusCode).toBe(200)
      expect(answer.headers).not.toHaveProperty('idempotency-replayed')
    }
    expect((await bulk(documents(1), headers)).statusCode).toBe(200)
  })

  it('may be the body itself', async () => {
    const byBody = { 'sluice-idempotency': 'body' }
    await bulk(documents(MANY), byBody)
    const second = await bulk(documents(MANY), byBody)
    expect(second.headers['idempotency-replayed']).toBe('true')
    await bulk(documents(1), byBody)
    expect(api.queue.rows.length).toBe(MANY + 1)
  })

  it('is rejected if it is malformed', async () => {
    expect((await bulk(documents(1), { 'idempotency-key': 'a b' })).statusCode).toBe(400)
  })
})

describe('a rate limit', () => {
  beforeEach(() => {
    api.registry.addProject({ limits: { entriesPerSecond: 100, burstEntries: 200 } })
    api.buckets.level = { entries: 200, bytes: 0 }
  })

  it('is charged for each record, valid or not', async () => {
    const answer = await bulk(`${documents(30)}{"index":{}}\n7\n{"delete":{}}\n`)
    expect(answer.statusCode).toBe(200)
    expect(answer.headers['ratelimit']).toBe('"entries";r=168;t=1')
  })

  it('is charged for one entry if there is no record', async () => {
    const answer = await api.post('{"streams":[]}', { url: '/loki/api/v1/push' })
    expect(answer.statusCode).toBe(204)
    expect(answer.headers['ratelimit']).toBe('"entries";r=199;t=1')
  })

  it('is charged for a rejected body', async () => {
    const answer = await bulk('{')
    expect(answer.statusCode).toBe(400)
    expect(answer.headers['ratelimit']).toBe('"entries";r=199;t=1')
  })

  it('is charged for the records that were read before the body was rejected', async () => {
    const answer = await bulk(`${documents(30)}{`)
    expect(answer.statusCode).toBe(400)
    expect(answer.headers['ratelimit']).toBe('"entries";r=170;t=1')
    expect((await bulk(documents(1))).headers['ratelimit']).toBe('"entries";r=169;t=1')
  })

  it('is charged for records of OTLP that were read before the body was rejected', async () => {
    const logs = encodeLogs(oneScope(...Array.from({ length: 30 }, () => ({ body: 'm' }))))
    const headers = { 'content-type': 'application/x-protobuf' }
    // A message that ends too early.
    const answer = await api.post(Buffer.concat([logs, Buffer.from([0x0a, 0x7f])]), { headers })
    expect(answer.statusCode).toBe(400)
    expect(answer.headers['ratelimit']).toBe('"entries";r=170;t=1')
  })

  it('is charged once for records that are not stored', async () => {
    failAdds(new QueueUnavailableError('no answer'), 0)
    expect((await bulk(documents(30))).headers['ratelimit']).toBe('"entries";r=170;t=1')
  })

  it('may become a debt after a rejected body of many records', async () => {
    expect((await bulk(`${documents(1_000)}{`)).statusCode).toBe(400)
    expect((await bulk(documents(1))).statusCode).toBe(429)
  })

  it('rejects a request with more records than it has left, and stores nothing', async () => {
    expect((await bulk(documents(150))).statusCode).toBe(200)
    const answer = await bulk(documents(60))
    expect(answer.statusCode).toBe(429)
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(api.queue.rows.length).toBe(150)
    expect(api.counts.answers).toContainEqual([[url, 'POST', '429'], 1])
  })
})

describe('the bytes of a request', () => {
  it('are released after each answer', async () => {
    await bulk(documents(10))
    await bulk('{')
    failAdds(new TypeError('unexpected'), 0)
    expect((await bulk(documents(10))).statusCode).toBe(500)
    await api.post('xxx', { url: '/loki/api/v1/push', headers: { 'content-type': 'application/x-protobuf' } })
    expect(api.bodies.status.bytes).toBe(0)
  })

  it('include its rows', async () => {
    await api.close()
    api = buildTestApi({ bodyLimits: { bytesMax: 1_000_000, projectBytesMax: 60_000 } })
    const small = documents(50, `,"n":"${'x'.repeat(1_000)}"`)
    expect(small.length).toBeLessThan(60_000)
    const answer = await bulk(small)
    expect(answer.statusCode).toBe(429)
    expect(api.counts.rejected).toContainEqual([['overloaded'], 1])
    expect(api.queue.adds).toEqual([])
    expect(api.bodies.status.bytes).toBe(0)
  })

  it.each([
    [450_000, 200],
    [200_000, 429],
  ])(
    'include what is kept of each record, valid or not: with %i, a request of 1,000 gets %i',
    async (max, status) => {
      await api.close()
      api = buildTestApi({ bodyLimits: { bytesMax: 1_000_000, projectBytesMax: max } })
      const path = '/api/v2/logs'
      const logs = `[${'7,'.repeat(999)}{"message":"m"}]`
      expect((await bulk('{"index":{}}\n7\n'.repeat(1_000))).statusCode).toBe(status)
      expect((await api.post(logs, { url: path, headers: { 'dd-api-key': api.key } })).statusCode).toBe(
        status === 200 ? 202 : 503,
      )
      expect(api.queue.adds.length).toBe(status === 200 ? 1 : 0)
      expect(api.bodies.status.bytes).toBe(0)
    },
  )

  it('include what is decoded, before it is decoded', async () => {
    await api.close()
    api = buildTestApi({ bodyLimits: { bytesMax: 1_000_000, projectBytesMax: 1_000 } })
    // 2,000 bytes: a literal of one byte, and copies of 64 bytes.
    const copies = Buffer.alloc(3 * 31, Buffer.from([(63 << 2) | 2, 1, 0]))
    const block = Buffer.concat([
      Buffer.from([0xd0, 0x0f, 0, 97]),
      copies,
      Buffer.from([(14 << 2) | 2, 1, 0]),
    ])
    const headers = { 'content-type': 'application/x-protobuf' }
    const answer = await api.post(block, { url: '/loki/api/v1/push', headers })
    expect([answer.statusCode, api.bodies.status.bytes]).toEqual([503, 0])
  })

  it('are limited after what its records share is repeated', async () => {
    const labels = { long: 'l'.repeat(16_000) }
    const push = (lines: number): Promise<LightMyRequestResponse> =>
      api.post(
        { streams: [{ stream: labels, values: Array.from({ length: lines }, () => ['0', 'x']) }] },
        { url: '/loki/api/v1/push' },
      )
    expect((await push(300)).statusCode).toBe(204)
    expect((await push(Math.ceil(limits.rowBytesPerRequestMax / 16_000) + 20)).statusCode).toBe(413)
    expect(api.queue.rows.length).toBe(300)
  })
})
