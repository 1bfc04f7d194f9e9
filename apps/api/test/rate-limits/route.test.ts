import { chunkText, HttpConnection, postHead } from '@sluice/harness'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { QueueUnavailableError } from '@sluice/queue'
import { Intake } from '../../src/intake/intake.ts'
import { problemCode } from '../support/problem.ts'
import { type Body, buildTestApi, type TestApi } from '../support/test-api.ts'

const entry = { level: 'info', message: 'm' }
const entries = (count: number): object => ({ logs: Array.from({ length: count }, () => entry) })
/** Entries that the scanner leaves to the parser. */
const unknown = (count: number): object[] => Array.from({ length: count }, () => ({ ...entry, unknown: 1 }))
const POLICY = '"entries";q=100;w=1;sluice-burst=200'

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
  api.registry.addProject({ limits: { entriesPerSecond: 100, burstEntries: 200 } })
  api.buckets.level = { entries: 200, bytes: 0 }
})

afterEach(async () => {
  await api.close()
})

describe('a project without limits', () => {
  it('gets no rate-limit headers', async () => {
    api.registry.addProject()
    const { statusCode, headers } = await api.post(entry)
    expect(statusCode).toBe(202)
    expect(headers).not.toHaveProperty('ratelimit')
    expect(headers).not.toHaveProperty('ratelimit-policy')
  })
})

describe('a project with limits', () => {
  it('gets them and the remainder with each answer', async () => {
    const { headers } = await api.post(entries(50))
    expect(headers['ratelimit-policy']).toBe(POLICY)
    expect(headers['ratelimit']).toBe('"entries";r=150;t=1')
  })

  it.each([
    [400, '{', {}, 199],
    [400, entry, { 'idempotency-key': 'a b' }, 199],
    [413, 'x'.repeat(5 * 1024 * 1024 + 1), {}, 200],
    [415, entry, { 'content-type': 'text/plain' }, 200],
    [415, entry, { 'content-encoding': 'lz4' }, 200],
    [415, entry, { 'content-type': 'application/json; charset=latin1' }, 200],
  ])('gets them with a %i', async (status, body, headers, left) => {
    const answer = await api.post(body, { headers })
    expect(answer.statusCode).toBe(status)
    expect(answer.headers['ratelimit-policy']).toBe(POLICY)
    expect(answer.headers['ratelimit']).toBe(`"entries";r=${left};t=1`)
  })

  it('gets them with a 503', async () => {
    api.queue.add = () => Promise.reject(new QueueUnavailableError('down'))
    const answer = await api.post(entry)
    expect(problemCode(answer)).toBe('queue_unavailable')
    expect(answer.headers['ratelimit']).toBe('"entries";r=199;t=1')
  })

  it('gets them with a 422', async () => {
    const headers = { 'idempotency-key': 'k' }
    await api.post(entry, { headers })
    const answer = await api.post([entry], { headers })
    expect(problemCode(answer)).toBe('idempotency_key_reused')
    expect(answer.headers).toHaveProperty('ratelimit')
    expect(answer.headers['ratelimit-policy']).toBe(POLICY)
  })

  it('gets them with a 500', async () => {
    api.queue.add = () => Promise.reject(new TypeError('unexpected'))
    const answer = await api.post(entry)
    expect(problemCode(answer)).toBe('internal_error')
    expect(answer.headers).toHaveProperty('ratelimit')
    expect(answer.headers['ratelimit-policy']).toBe(POLICY)
  })

  it('gets them during overload, and when its bodies do not fit', async () => {
    await api.signals.set('queue_depth', 90)
    const overloaded = await api.post(entry)
    await api.signals.set('queue_depth', 0)
    await api.close()
    api = buildTestApi({ bodyLimits: { bytesMax: 10, projectBytesMax: 10 } })
    api.registry.addProject({ limits: { entriesPerSecond: 100, burstEntries: 200 } })
    for (const answer of [overloaded, await api.post(entry)]) {
      expect(problemCode(answer)).toBe('overloaded')
      expect(answer.headers).toHaveProperty('ratelimit')
      expect(answer.headers['ratelimit-policy']).toBe(POLICY)
    }
  })

  it('gets them with a 403, and with a 404 if it is disabled', async () => {
    const { key } = api.registry.addKey({ scopes: ['read'] })
    const forbidden = await api.post(entry, { headers: { authorization: `Bearer ${key}` } })
    expect(problemCode(forbidden)).toBe('forbidden')
    api.registry.addProject({ enabled: false, limits: { entriesPerSecond: 100, burstEntries: 200 } })
    api.authenticator.invalidate('demo')
    const disabled = await api.post(entry)
    expect(problemCode(disabled)).toBe('project_not_found')
    for (const { headers } of [forbidden, disabled]) {
      expect(headers['ratelimit-policy']).toBe(POLICY)
      expect(headers['ratelimit']).toBe('"entries";r=200;t=1')
    }
  })

  it('does not get them if the key is unknown', async () => {
    const { headers } = await api.post(entry, { headers: { authorization: 'Bearer nothing' } })
    expect(headers).not.toHaveProperty('ratelimit-policy')
  })

  it('has the right entries stored if requests arrive while a lease is in flight', async () => {
    api.buckets.beforeAnswer = () => sleep(50)
    const messages = ['first', 'second']
    await Promise.all(messages.map((message) => api.post({ level: 'info', message })))
    expect(api.buckets.requests).toHaveLength(1)
    expect(new Set(api.queue.rows.map((row) => row['message']))).toEqual(new Set(messages))
  })

  it('pays once for each entry, valid or not', async () => {
    await api.post({ logs: [entry, {}, 7] })
    await api.post(entry)
    await api.post([])
    expect(api.buckets.requests.flatMap(({ costs }) => costs.map((cost) => cost.entries))).toEqual([1])
    expect((await api.post(entry)).headers['ratelimit']).toBe('"entries";r=194;t=1')
  })

  it.each([[[]], [{ logs: [] }]])('pays for one entry if it sends none: %j', async (body) => {
    const { headers } = await api.post(body)
    expect(headers['ratelimit']).toBe('"entries";r=199;t=1')
  })

  it('pays for the bytes of its bodies', async () => {
    api.registry.addProject({ id: 'demo', limits: { bytesPerSecond: 100_000 } })
    api.buckets.level = { entries: 0, bytes: 5_000_000 }
    await api.post(JSON.stringify(entry))
    expect(api.buckets.requests[0]?.costs).toEqual([{ entries: 0, bytes: JSON.stringify(entry).length }])
  })

  it.each([
    ['that is not JSON', '{', {}],
    ['that is an invalid entry', { level: 'info' }, {}],
    ['that is empty', '', {}],
    ['that is not UTF-8', Buffer.from([0xff]), {}],
    ['that has no entries', [], {}],
    ['that has too many entries', entries(101), {}],
    ['that cannot be decoded', 'x', { 'content-encoding': 'gzip' }],
    ['with a bad idempotency key', entry, { 'idempotency-key': 'é' }],
  ])('pays for one entry for a body %s', async (_what, body, headers) => {
    await api.post(entry)
    const { statusCode, headers: answer } = await api.post(body, { headers })
    expect(statusCode).toBe(Array.isArray(body) ? 202 : 400)
    expect(answer['ratelimit']).toBe('"entries";r=198;t=1')
  })

  it('pays for the bytes of a body that is rejected', async () => {
    api.registry.addProject({ id: 'demo', limits: { bytesPerSecond: 10_000_000 } })
    api.buckets.level = { entries: 0, bytes: 10_000_000 }
    const left = async (body: Body, headers: Record<string, string> = {}): Promise<number> => {
      const answer = await api.post(body, { headers })
      expect([400, 413]).toContain(answer.statusCode)
      return Number(/r=(\d+)/.exec(String(answer.headers['ratelimit']))?.[1])
    }
    expect(await left(`[${' '.repeat(998)}{`)).toBe(10_000_000 - 1_000)
    expect(await left(Buffer.alloc(1_000, 0xff))).toBe(10_000_000 - 2_000)
    expect(await left(gzipSync(`[${' '.repeat(999_998)}{`), { 'content-encoding': 'gzip' })).toBe(
      10_000_000 - 1_002_000,
    )
    expect(await left(gzipSync(Buffer.alloc(6_000_000)), { 'content-encoding': 'gzip' })).toBe(
      10_000_000 - 1_002_000 - 5 * 1024 * 1024,
    )
  })

  it('pays a sixteenth of the decoded bytes of a body that is above the limit', async () => {
    api.registry.addProject({ id: 'demo', limits: { bytesPerSecond: 10_000_000 } })
    api.buckets.level = { entries: 0, bytes: 3_000_000 }
    const body = gzipSync(JSON.stringify(entry).padEnd(4_000_000))
    const headers = { 'content-encoding': 'gzip' }
    const rejected = await api.post(body, { headers })
    expect(rejected.statusCode).toBe(429)
    expect(rejected.headers['ratelimit']).toContain(`r=${3_000_000 - 4_000_000 / 16};`)
    api.buckets.level = { entries: 0, bytes: 10_000_000 }
    await vi.waitFor(async () => expect((await api.post(body, { headers })).statusCode).toBe(202), {
      timeout: 10_000,
    })
  })

  it('pays for the decoded bytes of a body once', async () => {
    api.registry.addProject({ id: 'demo', limits: { bytesPerSecond: 10_000_000 } })
    api.buckets.level = { entries: 0, bytes: 10_000_000 }
    const body = gzipSync(JSON.stringify(entry).padEnd(4_000_000))
    const { headers } = await api.post(body, { headers: { 'content-encoding': 'gzip' } })
    expect(headers['ratelimit']).toContain(`r=${10_000_000 - 4_000_000};`)
  })

  it('pays for a body of unknown length that is too large', async () => {
    api.registry.addProject({ id: 'demo', limits: { bytesPerSecond: 10_000_000 } })
    api.buckets.level = { entries: 0, bytes: 10_000_000 }
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    const connection = await HttpConnection.open((api.app.server.address() as AddressInfo).port)
    connection.write(postHead(api.key, ['Transfer-Encoding: chunked']))
    for (let i = 0; i <= 10; i += 1) connection.write(chunkText('a'.repeat(512 * 1024)))
    await expect.poll(() => connection.responses.length).toBe(1)
    expect(connection.responses[0]).toMatchObject({
      status: 413,
      headers: { ratelimit: '"bytes";r=14757120;t=1' },
    })
    connection.destroy()
  })

  it('is charged once for a body that is parsed, also if it costs more than the burst', async () => {
    api.registry.addProject({ limits: { entriesPerSecond: 10, burstEntries: 10 } })
    api.buckets.level = { entries: 10, bytes: 0 }
    const answer = await api.post({ logs: Array.from({ length: 50 }, () => ({ ...entry, unknown: 1 })) })
    expect(answer.statusCode).toBe(202)
    expect(api.queue.rows).toHaveLength(50)
    expect((await api.post(entry)).statusCode).toBe(429)
  })
})

describe('a project that is over its limit', () => {
  beforeEach(() => {
    api.buckets.level = { entries: 60, bytes: 0 }
  })

  it('has the whole request rejected, and nothing is enqueued', async () => {
    const answer = await api.post(entries(70))
    expect(problemCode(answer)).toBe('rate_limited')
    expect(answer.headers['retry-after']).toBe('1')
    expect(answer.headers['ratelimit-policy']).toBe(POLICY)
    expect(api.queue.rows).toEqual([])
  })

  it('pays for one entry of a rejected request, and can send as much as is left', async () => {
    expect((await api.post(entries(70))).statusCode).toBe(429)
    expect((await api.post(entries(59))).statusCode).toBe(202)
    expect(api.queue.rows).toHaveLength(59)
  })

  it('has a body that must be parsed rejected before it is parsed, or after, and keeps what it has paid', async () => {
    const { statusCode, headers } = await api.post(unknown(70))
    expect([statusCode, headers['ratelimit']]).toEqual([429, '"entries";r=59;t=1'])
    expect((await api.post(unknown(60))).statusCode).toBe(429)
    expect((await api.post(unknown(58))).statusCode).toBe(202)
    const parse = vi.spyOn(Intake.prototype, 'parse')
    expect((await api.post(unknown(1))).statusCode).toBe(429)
    expect(parse).not.toHaveBeenCalled()
  })

  it('gets the necessary wait', async () => {
    api.buckets.level = { entries: -130, bytes: 0 }
    expect((await api.post(entries(100))).headers['retry-after']).toBe('3')
  })

  it('is rejected before its body is read if nothing is left', async () => {
    api.buckets.level = { entries: -130, bytes: 0 }
    await api.post(entry)
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    const connection = await HttpConnection.open((api.app.server.address() as AddressInfo).port)
    const head = ['POST /v1/logs HTTP/1.1', 'Host: localhost', `Authorization: Bearer ${api.key}`]
    connection.write([...head, 'Content-Type: application/json', 'Content-Length: 1000', '\r\n'].join('\r\n'))
    await expect.poll(() => connection.responses.length).toBe(1)
    expect(connection.responses[0]).toMatchObject({ status: 429, headers: { 'ratelimit-policy': POLICY } })
    connection.destroy()
  })

  it('can send again when its limit is removed', async () => {
    api.buckets.level = { entries: -130, bytes: 0 }
    expect((await api.post(entry)).statusCode).toBe(429)
    api.registry.addProject()
    api.authenticator.invalidate('demo')
    expect((await api.post(entry)).statusCode).toBe(202)
  })
})
