import { chunkText, postHead } from '@sluice/harness'
import type { ProjectLimits } from '@sluice/projects'
import type { LightMyRequestResponse } from 'fastify'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { Intake } from '../../src/intake/intake.ts'
import { problems } from '../../src/problems.ts'
import { rejections } from '../support/rejections.ts'
import { expectResponses, freshTestApi } from '../support/shared-api.ts'
import type { Body } from '../support/test-api.ts'

const entry = { level: 'info', message: 'm' }
const entries = (count: number): object => ({ logs: Array.from({ length: count }, () => entry) })
const POLICY = '"entries";q=100;w=1;sluice-burst=200'
const hundred: ProjectLimits = { entriesPerSecond: 100, burstEntries: 200 }
const gzip = { 'content-encoding': 'gzip' }

const api = freshTestApi()

/** @param left of the limited unit */
function limit(limits: ProjectLimits, left: number): void {
  api.registry.addProject({ limits })
  api.buckets.level =
    limits.bytesPerSecond === undefined ? { entries: left, bytes: 0 } : { entries: 0, bytes: left }
}
const limitBytes = (left: number): void => limit({ bytesPerSecond: 10_000_000 }, left)

/** What is left, according to the response. */
const leftOf = ({ headers }: Pick<LightMyRequestResponse, 'headers'>): number =>
  Number(/r=(\d+)/.exec(String(headers['ratelimit']))?.[1])

const expectLimits = (answer: LightMyRequestResponse, status: number, left: number): void => {
  expect([answer.statusCode, answer.headers['ratelimit-policy']]).toEqual([status, POLICY])
  expect(leftOf(answer)).toBe(left)
}

beforeEach(() => limit(hundred, 200))

describe('the headers of a rate limit', () => {
  it.each([
    ['forbidden', 200],
    ['body_too_large', 200],
    ['unsupported_encoding', 200],
    ['overloaded', 200],
    ['invalid_idempotency_key', 199],
    ['internal_error', 199],
    ['queue_unavailable', 199],
  ] as const)('are on a rejection: %s', async (code, left) => {
    const { headers = {}, body = entry } = (await rejections[code]?.(api)) ?? {}
    expectLimits(await api.post(body, { headers }), problems[code].status, left)
  })

  it('are on accepted requests, and for a disabled project', async () => {
    expectLimits(await api.post(entries(50)), 202, 150)
    api.registry.addProject({ enabled: false, limits: hundred })
    const { key } = api.registry.addKey()
    expectLimits(await api.post(entry, { headers: { authorization: `Bearer ${key}` } }), 404, 150)
  })

  it('are not on responses to a project without limits, or for an unknown key', async () => {
    const stranger = await api.post(entry, { headers: { authorization: 'Bearer nothing' } })
    api.registry.addProject()
    for (const { headers } of [stranger, await api.post(entry)]) {
      expect(headers).not.toHaveProperty('ratelimit')
      expect(headers).not.toHaveProperty('ratelimit-policy')
    }
  })
})

describe('a project with limits', () => {
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
    expect(leftOf(await api.post(entry))).toBe(194)
  })

  it.each<[what: string, body: Body, headers: Record<string, string>]>([
    ['that is not JSON', '{', {}],
    ['that has too many entries', entries(101), {}],
    ['that cannot be decoded', 'x', gzip],
  ])('pays for one entry for a body %s', async (_what, body, headers) => {
    await api.post(entry)
    const response = await api.post(body, { headers })
    expect(response.statusCode).toBe(400)
    expect(leftOf(response)).toBe(198)
  })

  it.each<[what: string, body: Body, headers: Record<string, string>, paid: number]>([
    ['is not JSON', `[${' '.repeat(998)}{`, {}, 1_000],
    ['is not JSON when it is decoded', gzipSync(`[${' '.repeat(999_998)}{`), gzip, 1_000_000],
    ['is too large when it is decoded', gzipSync(Buffer.alloc(6_000_000)), gzip, 5 * 1024 * 1024],
    ['is accepted, once', gzipSync(JSON.stringify(entry).padEnd(4_000_000)), gzip, 4_000_000],
  ])('pays for the decoded bytes of a body that %s', async (_what, body, headers, paid) => {
    limitBytes(10_000_000)
    expect(leftOf(await api.post([]))).toBe(10_000_000 - 2)
    expect(leftOf(await api.post(body, { headers }))).toBe(10_000_000 - 2 - paid)
  })

  it('pays a sixteenth of the decoded bytes of a body that is above the limit', async () => {
    limitBytes(3_000_000)
    const body = gzipSync(JSON.stringify(entry).padEnd(4_000_000))
    const rejected = await api.post(body, { headers: gzip })
    expect(rejected.statusCode).toBe(429)
    expect(leftOf(rejected)).toBe(3_000_000 - 4_000_000 / 16)
    api.buckets.level = { entries: 0, bytes: 10_000_000 }
    await vi.waitFor(async () => expect((await api.post(body, { headers: gzip })).statusCode).toBe(202))
  })

  it('pays for a body of unknown length that is too large', async () => {
    limitBytes(10_000_000)
    const connection = await api.connect()
    connection.write(postHead(api.key, ['Transfer-Encoding: chunked']))
    for (let i = 0; i <= 10; i += 1) connection.write(chunkText('a'.repeat(512 * 1024)))
    const [response] = await expectResponses(connection, 413)
    expect(response && leftOf(response)).toBe(20_000_000 - 5 * 1024 * 1024)
  })

  it('is charged once for a body, also if it costs more than the burst', async () => {
    limit({ entriesPerSecond: 10, burstEntries: 10 }, 10)
    expect((await api.post(entries(50))).statusCode).toBe(202)
    expect(api.queue.rows).toHaveLength(50)
    expect((await api.post(entry)).statusCode).toBe(429)
  })
})

describe('a project that is over its limit', () => {
  beforeEach(() => limit(hundred, 60))

  it('has a body rejected before it is read, or after, and keeps what it has paid', async () => {
    const response = await api.post(entries(70))
    expect([response.statusCode, leftOf(response)]).toEqual([429, 59])
    expect((await api.post(entries(60))).statusCode).toBe(429)
    expect((await api.post(entries(58))).statusCode).toBe(202)
    const read = vi.spyOn(Intake.prototype, 'readEntries')
    expect((await api.post(entries(1))).statusCode).toBe(429)
    expect(read).not.toHaveBeenCalled()
  })

  it('has a large compressed body rejected before it is decoded', async () => {
    limitBytes(50_000)
    expect((await api.post(gzipSync(randomBytes(100_000)), { headers: gzip })).statusCode).toBe(429)
    expect(api.counts.decodedBytes).toBe(0)
  })

  it('gets the necessary wait, and is rejected before its body is read if nothing is left', async () => {
    limit(hundred, -130)
    expect((await api.post(entries(100))).headers['retry-after']).toBe('3')
    const connection = await api.connect()
    connection.write(postHead(api.key, ['Content-Length: 1000']))
    const [response] = await expectResponses(connection, 429)
    expect(response?.headers['ratelimit-policy']).toBe(POLICY)
  })
})
