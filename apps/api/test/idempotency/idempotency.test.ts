import { ownedRows } from '@sluice/row-scanner'
import type { LightMyRequestResponse } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Idempotency } from '../../src/idempotency/idempotency.ts'
import { problemCode } from '../support/problem.ts'
import { type Body, buildTestApi, type TestApi } from '../support/test-api.ts'

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

const entry = { level: 'info', message: 'm' }
const send = (
  body: Body,
  key: string,
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> => api.post(body, { headers: { 'idempotency-key': key, ...headers } })
const isReplay = ({ headers }: LightMyRequestResponse): boolean => headers['idempotency-replayed'] === 'true'

describe('a request with a key', () => {
  it('is accepted like a request without one', async () => {
    const response = await send(entry, 'k')
    expect(response.statusCode).toBe(202)
    expect(response.headers).not.toHaveProperty('idempotency-replayed')
    expect(api.queue.rows).toMatchObject([{ id: response.json<{ id: string }>().id, message: 'm' }])
  })

  it('has its own entries stored when other requests are sent at the same time', async () => {
    const messages = ['first', 'second', 'third']
    await Promise.all(messages.map((message) => send({ level: 'info', message }, message)))
    expect(new Set(api.queue.rows.map((row) => row['message']))).toEqual(new Set(messages))
  })

  it('gets the same answer again, and is stored once', async () => {
    const first = await send(entry, 'k')
    const second = await send(entry, 'k')
    expect(second.statusCode).toBe(202)
    expect(isReplay(second)).toBe(true)
    expect(second.body).toBe(first.body)
    expect(api.queue.rows).toHaveLength(1)
  })

  it.each([
    ['an entry with a timestamp', { ...entry, timestamp: '2026-03-29T01:30:00.123456789+02:00' }],
    ['a batch request', { logs: [entry, { level: 'info' }, entry] }],
    ['an array', [entry, entry]],
  ])('gets the same answer again: %s', async (_what, body) => {
    const first = await send(body, 'k')
    const stored = api.queue.rows.length
    const second = await send(body, 'k')
    expect([first.statusCode, second.statusCode]).toEqual([202, 202])
    expect([isReplay(first), isReplay(second)]).toEqual([false, true])
    expect(second.body).toBe(first.body)
    expect(api.queue.rows).toHaveLength(stored)
  })

  it('is rejected if an earlier request had the key and another body', async () => {
    await send(entry, 'k')
    const other = await send({ ...entry, message: 'n' }, 'k')
    expect(other.statusCode).toBe(422)
    expect(problemCode(other)).toBe('idempotency_key_reused')
    expect(api.queue.rows).toHaveLength(1)
  })

  it.each([
    ['a batch request with no valid entry', { logs: [{ level: 'info' }] }],
    ['an empty batch request', { logs: [] }],
  ])('leaves no record if it has no rows, and always gets the same answer: %s', async (_what, body) => {
    const first = await send(body, 'k')
    const second = await send(body, 'k')
    expect([first.statusCode, second.statusCode]).toEqual([202, 202])
    expect([isReplay(first), isReplay(second)]).toEqual([false, false])
    expect(second.body).toBe(first.body)
    expect(api.queue.records.size).toBe(0)
    expect((await send(entry, 'k')).statusCode).toBe(202)
    expect(problemCode(await send(body, 'k'))).toBe('idempotency_key_reused')
  })

  it('is rejected if the project has no room for its key, unless an earlier request had it', async () => {
    const first = await send(entry, 'k')
    api.queue.usedUp.set('{test}:idempotency-quota:demo', 3_599_001)
    const rejected = await send(entry, 'l')
    expect(problemCode(rejected)).toBe('too_many_idempotency_keys')
    expect(rejected.headers['retry-after']).toBe('3600')
    expect(isReplay(await send(entry, 'k'))).toBe(true)
    expect((await send(entry, 'k')).body).toBe(first.body)
    expect((await api.post(entry)).statusCode).toBe(202)
    expect(api.queue.rows).toHaveLength(2)
  })

  it('is the same request under both paths, and in any spelling of the media type', async () => {
    await send(entry, 'k')
    const again = await api.post(entry, {
      url: '/api/v1/logs',
      headers: { 'idempotency-key': 'k', 'content-type': 'Application/JSON; charset=utf-8' },
    })
    expect(isReplay(again)).toBe(true)
  })

  it('is a different request for each key', async () => {
    const ids = await Promise.all(['k', 'K', 'k.'].map((key) => send(entry, key)))
    expect(ids.map(isReplay)).toEqual([false, false, false])
    expect(api.queue.rows).toHaveLength(3)
  })

  it('is a different request for each project', async () => {
    api.registry.addProject({ id: 'other' })
    const { key } = api.registry.addKey({ projectId: 'other' })
    await send(entry, 'k')
    const other = await send(entry, 'k', { authorization: `Bearer ${key}` })
    expect(isReplay(other)).toBe(false)
    expect(api.queue.rows.map(({ project_id: id }) => id)).toEqual(['demo', 'other'])
  })

  it('leaves no record if it is rejected, so that the key can be used again', async () => {
    expect((await send('{', 'k')).statusCode).toBe(400)
    expect((await send({ level: 'info' }, 'k')).statusCode).toBe(400)
    expect(api.queue.records.size).toBe(0)
    expect(isReplay(await send(entry, 'k'))).toBe(false)
  })

  it('does not disclose its key, not even to Redis', async () => {
    await send(entry, 'a-secret-key')
    expect([...api.queue.records].join()).not.toContain('a-secret-key')
    expect([...api.queue.records.keys()]).toEqual([expect.stringMatching(/^\{test\}:idempotency:[\w-]{22}$/)])
  })
})

describe('concurrent requests with one key', () => {
  it('are stored once, and get the same answer', async () => {
    const responses = await Promise.all(Array.from({ length: 20 }, () => send(entry, 'k')))
    expect(new Set(responses.map(({ body }) => body)).size).toBe(1)
    expect(responses.filter(isReplay)).toHaveLength(19)
    expect(api.queue.rows).toHaveLength(1)
  })

  it('are rejected unless they have the body of the first', async () => {
    const bodies = [entry, { ...entry, message: 'n' }, entry, { ...entry, message: 'o' }]
    const responses = await Promise.all(bodies.map((body) => send(body, 'k')))
    expect(responses.map(({ statusCode }) => statusCode)).toEqual([202, 422, 202, 422])
    expect(api.queue.rows).toHaveLength(1)
  })
})

describe('a key', () => {
  it.each([
    ['one character', '!'],
    ['255 characters', '~'.repeat(255)],
    ['quotes', '"a,b"'],
  ])('may have %s', async (_what, key) => {
    expect((await send(entry, key)).statusCode).toBe(202)
    expect(isReplay(await send(entry, key))).toBe(true)
  })

  it.each([
    ['be empty', ''],
    ['have 256 characters', 'a'.repeat(256)],
    ['have spaces', 'a b'],
    ['be sent twice', 'a, a'],
    ['have other characters', 'ü'],
  ])('may not %s', async (_what, key) => {
    const response = await send(entry, key)
    expect(problemCode(response)).toBe('invalid_idempotency_key')
    expect(api.queue.adds).toEqual([])
  })
})

it('stores no record of a request without a key', async () => {
  await api.post(entry)
  expect(api.queue.records.size).toBe(0)
})

it('stores nothing if there is no shard for the key', async () => {
  const writes: unknown[] = []
  const writer = { writeOnce: (write: unknown) => (writes.push(write), Promise.resolve('')) }
  const idempotency = new Idempotency(writer, [], () => 'an-id')
  const parsed = { entries: 0, rows: ownedRows(0, ''), answer: '{}' }
  const request = { projectId: 'p', key: 'k', digest: 'd', parsed, origin: { id: 'r', span: null } }
  await expect(idempotency.write(request)).rejects.toThrow(RangeError)
  expect(writes).toEqual([])
})
