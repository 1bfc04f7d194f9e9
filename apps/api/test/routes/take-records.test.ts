import { encodeLogs } from '@sluice/harness/otlp-logs'
import { QueueUnavailableError } from '@sluice/queue'
import type { LightMyRequestResponse } from 'fastify'
import { beforeEach, describe, expect, it } from 'vitest'
import { pieceLimits } from '../../src/intake/intake.ts'
import { identify } from '../../src/idempotency/idempotency.ts'
import { oneScope } from '../protocols/otlp/otlp-api.ts'
import { freshTestApi, rebuild } from '../support/shared-api.ts'

// The bulk API of Elasticsearch stands for all protocols.
const url = '/elasticsearch/_bulk'
const api = freshTestApi()

const bulk = (body: string, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> =>
  api.post(body, { url, headers })
const documents = (count: number, more = ''): string =>
  Array.from({ length: count }, (_, i) => `{"index":{}}\n{"message":"${i}"${more}}\n`).join('')
/** Of the rows that the queue has. */
const messages = (): number[] =>
  api.queue.rows.map(({ message }) => Number(message)).toSorted((a, b) => a - b)
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

/** More documents than two pieces have. */
const MANY = 2 * pieceLimits.rowsMax + 500

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

describe('a request with more rows than a piece', () => {
  it('is stored in pieces', async () => {
    expect((await bulk(documents(MANY))).statusCode).toBe(200)
    expect(api.queue.adds[0]?.names).toHaveLength(pieceLimits.rowsMax)
    expect(messages()).toEqual(numbers(MANY))
    expect(api.counts.accepted).toBe(MANY)
  })
})

describe('an idempotency key', () => {
  const headers = { 'idempotency-key': 'k' }

  it('makes each piece stored once, whichever was stored at first', async () => {
    failAdds(new QueueUnavailableError('no answer'), 1)
    expect((await bulk(documents(MANY), headers)).statusCode).toBe(429)
    const before = api.queue.rows.length
    expect(before).toBeLessThan(MANY)
    const retry = await bulk(documents(MANY), headers)
    expect(retry.statusCode).toBe(200)
    expect(retry.headers).not.toHaveProperty('idempotency-replayed')
    expect(messages()).toEqual(numbers(MANY))
    const replay = await bulk(documents(MANY), headers)
    expect([replay.headers['idempotency-replayed'], replay.body]).toEqual(['true', retry.body])
    expect([api.counts.accepted, api.counts.replays]).toEqual([MANY - before, 1])
    expect(messages()).toEqual(numbers(MANY))
  })

  it.each([
    [MANY, 1],
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

  it('has the digest of each piece: a version that divides the body differently rejects a retry', async () => {
    for (const [count, isWhole] of [
      [1, true],
      [MANY, false],
    ] as const) {
      const key = { 'idempotency-key': `k${count}`, 'content-type': 'application/json' }
      const body = documents(count)
      await bulk(body, key)
      const request = { headers: key, routeOptions: { url }, url }
      const whole = identify(request, Buffer.from(body))
      const digests = [...api.queue.records.values()].map((record) => record.slice(0, 22))
      expect(digests.includes(whole?.digest ?? '')).toBe(isWhole)
    }
  })

  it('of a request without valid records has no record', async () => {
    const invalid = '{"index":{}}\n7\n'
    for (let count = 0; count < 2; count += 1) {
      const answer = await bulk(invalid, headers)
      expect(answer.statusCode).toBe(200)
      expect(answer.headers).not.toHaveProperty('idempotency-replayed')
    }
    expect((await bulk(documents(1), headers)).statusCode).toBe(200)
  })
})

describe('a rate limit', () => {
  beforeEach(() => {
    api.registry.addProject({ limits: { entriesPerSecond: 100, burstEntries: 200 } })
    api.buckets.level = { entries: 200, bytes: 0 }
  })

  const protobuf = { 'content-type': 'application/x-protobuf' }
  const thirty = encodeLogs(oneScope(...Array.from({ length: 30 }, () => ({ body: 'm' }))))

  it.each<[what: string, path: string, body: string | Buffer, headers: Record<string, string>, paid: number]>(
    [
      ['each record, valid or not', url, `${documents(30)}{"index":{}}\n7\n{"delete":{}}\n`, {}, 32],
      ['one entry if the body is rejected', url, '{', {}, 1],
      ['the records that were read before the body was rejected', url, `${documents(30)}{`, {}, 30],
      // A message that ends too early.
      [
        'the records of OTLP that were read before the body was rejected',
        '/v1/logs',
        Buffer.concat([thirty, Buffer.from([0x0a, 0x7f])]),
        protobuf,
        30,
      ],
    ],
  )('is charged for %s', async (_what, path, body, headers, paid) => {
    const answer = await api.post(body, { url: path, headers })
    expect(answer.headers['ratelimit']).toBe(`"entries";r=${200 - paid};t=1`)
    expect((await bulk(documents(1))).headers['ratelimit']).toBe(`"entries";r=${199 - paid};t=1`)
  })

  it('is charged once for records that are not stored', async () => {
    failAdds(new QueueUnavailableError('no answer'), 0)
    expect((await bulk(documents(30))).headers['ratelimit']).toBe('"entries";r=170;t=1')
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
  it('are released after each response', async () => {
    await bulk(documents(10))
    await bulk('{')
    failAdds(new TypeError('unexpected'), 0)
    expect((await bulk(documents(10))).statusCode).toBe(500)
    await api.post('xxx', { url: '/loki/api/v1/push', headers: { 'content-type': 'application/x-protobuf' } })
    expect(api.bodies.status.bytes).toBe(0)
  })

  it('include its rows', async () => {
    await rebuild(api, { bodyLimits: { bytesMax: 1_000_000, projectBytesMax: 60_000 } })
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
      await rebuild(api, { bodyLimits: { bytesMax: 1_000_000, projectBytesMax: max } })
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
    await rebuild(api, { bodyLimits: { bytesMax: 1_000_000, projectBytesMax: 1_000 } })
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
})
