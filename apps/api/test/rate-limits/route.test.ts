import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { QueueUnavailableError } from '../../src/chunks/chunk-queue.ts'
import { problemCode } from '../support/problem.ts'
import { RawConnection } from '../support/raw-http.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

const entry = { level: 'info', message: 'm' }
const entries = (count: number): object => ({ logs: Array.from({ length: count }, () => entry) })
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
  it('is told none', async () => {
    api.registry.addProject()
    const { statusCode, headers } = await api.post(entry)
    expect(statusCode).toBe(202)
    expect(headers).not.toHaveProperty('ratelimit')
    expect(headers).not.toHaveProperty('ratelimit-policy')
  })
})

describe('a project with limits', () => {
  it('is told them, and what is left, with each answer', async () => {
    const { headers } = await api.post(entries(50))
    expect(headers['ratelimit-policy']).toBe(POLICY)
    expect(headers['ratelimit']).toBe('"entries";r=150;t=1')
  })

  it.each([
    [400, '{', {}],
    [413, 'x'.repeat(5 * 1024 * 1024 + 1), {}],
    [415, entry, { 'content-type': 'text/plain' }],
  ])('is told them with a %i', async (status, body, headers) => {
    const answer = await api.post(body, { headers })
    expect(answer.statusCode).toBe(status)
    expect(answer.headers['ratelimit-policy']).toBe(POLICY)
    expect(answer.headers['ratelimit']).toBe('"entries";r=200;t=1')
  })

  it('is told them with a 503', async () => {
    api.queue.add = () => Promise.reject(new QueueUnavailableError('down'))
    const answer = await api.post(entry)
    expect(problemCode(answer)).toBe('queue_unavailable')
    expect(answer.headers['ratelimit']).toBe('"entries";r=199;t=1')
  })

  it('is told nothing where the key is not known', async () => {
    const { headers } = await api.post(entry, { headers: { authorization: 'Bearer nothing' } })
    expect(headers).not.toHaveProperty('ratelimit-policy')
  })

  it('has its own entries stored, whoever else sends while its lease is on its way', async () => {
    api.buckets.beforeAnswer = () => sleep(50)
    const messages = ['first', 'second']
    await Promise.all(messages.map((message) => api.post({ level: 'info', message })))
    expect(api.buckets.requests).toHaveLength(1)
    expect(new Set(api.queue.rows.map((row) => row['message']))).toEqual(new Set(messages))
  })

  it('pays for each entry that it sent, valid or not, once', async () => {
    await api.post({ logs: [entry, {}, 7] })
    await api.post(entry)
    await api.post([])
    expect(api.buckets.requests.flatMap(({ costs }) => costs.map((cost) => cost.entries))).toEqual([3])
    expect((await api.post(entry)).headers['ratelimit']).toBe('"entries";r=195;t=1')
  })

  it('pays for the bytes of its bodies', async () => {
    api.registry.addProject({ id: 'demo', limits: { bytesPerSecond: 100_000 } })
    api.buckets.level = { entries: 0, bytes: 5_000_000 }
    await api.post(JSON.stringify(entry))
    expect(api.buckets.requests[0]?.costs).toEqual([{ entries: 0, bytes: JSON.stringify(entry).length }])
  })

  it('pays nothing for what is refused', async () => {
    await api.post('{')
    await api.post({ level: 'info' })
    expect(api.buckets.requests).toEqual([])
  })
})

describe('a project that is over its limit', () => {
  beforeEach(() => {
    api.buckets.level = { entries: 60, bytes: 0 }
  })

  it('is refused the whole request, and nothing is enqueued', async () => {
    const answer = await api.post(entries(70))
    expect(problemCode(answer)).toBe('rate_limited')
    expect(answer.headers['retry-after']).toBe('1')
    expect(answer.headers['ratelimit-policy']).toBe(POLICY)
    expect(api.queue.rows).toEqual([])
  })

  it('is let through with what is there', async () => {
    expect((await api.post(entries(70))).statusCode).toBe(429)
    expect((await api.post(entries(60))).statusCode).toBe(202)
    expect(api.queue.rows).toHaveLength(60)
  })

  it('is told how long it must wait', async () => {
    api.buckets.level = { entries: -130, bytes: 0 }
    expect((await api.post(entries(100))).headers['retry-after']).toBe('3')
  })

  it('is refused before its body is read when nothing is left', async () => {
    api.buckets.level = { entries: -130, bytes: 0 }
    await api.post(entry)
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    const connection = await RawConnection.open((api.app.server.address() as AddressInfo).port)
    const head = ['POST /v1/logs HTTP/1.1', 'Host: localhost', `Authorization: Bearer ${api.key}`]
    connection.write([...head, 'Content-Type: application/json', 'Content-Length: 1000', '\r\n'].join('\r\n'))
    await expect.poll(() => connection.responses.length).toBe(1)
    expect(connection.responses[0]).toMatchObject({ status: 429, headers: { 'ratelimit-policy': POLICY } })
    connection.destroy()
  })

  it('is let through again when its limit is lifted', async () => {
    api.buckets.level = { entries: -130, bytes: 0 }
    expect((await api.post(entry)).statusCode).toBe(429)
    api.registry.addProject()
    api.authenticator.invalidate('demo')
    expect((await api.post(entry)).statusCode).toBe(202)
  })
})
