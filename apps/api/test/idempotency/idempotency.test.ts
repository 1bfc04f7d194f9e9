import type { LightMyRequestResponse } from 'fastify'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { oneScope, postLogs } from '../protocols/otlp/otlp-api.ts'
import { problemCode } from '../support/problem.ts'
import { freshTestApi } from '../support/shared-api.ts'
import type { Body } from '../support/test-api.ts'

const api = freshTestApi()

const entry = { level: 'info', message: 'm' }
const byBody = { 'sluice-idempotency': 'body' }
const send = (
  body: Body,
  key: string,
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> => api.post(body, { headers: { 'idempotency-key': key, ...headers } })
const isReplay = ({ headers }: LightMyRequestResponse): boolean => headers['idempotency-replayed'] === 'true'

/** Clients that can only send constant headers make the body the key. */
describe.each([
  ['a key', { 'idempotency-key': 'k' }],
  ['its body as the key', byBody],
  ['its body as the key, twice', { 'sluice-idempotency': 'body, body' }],
] as const)('a request with %s', (_what, headers) => {
  it.each([
    ['an entry with a timestamp', { ...entry, timestamp: '2026-03-29T01:30:00.123456789+02:00' }],
    ['an entry that must be parsed', { ...entry, unknown: 1 }],
    ['a batch request', { logs: [entry, { level: 'info' }, entry] }],
  ])('is stored once, and gets the same response again: %s', async (_body, body) => {
    const first = await api.post(body, { headers })
    const { rows } = api.queue
    const second = await api.post(body, { headers })
    expect([first.statusCode, second.statusCode]).toEqual([202, 202])
    expect([isReplay(first), isReplay(second)]).toEqual([false, true])
    expect(second.body).toBe(first.body)
    expect(api.queue.rows).toEqual(rows)
    expect(api.bodies.status.bytes).toBe(0)
  })

  it('is the same request under both paths, in any spelling of the media type, and with any encoding', async () => {
    await api.post(entry, { headers })
    const again = await api.post(gzipSync(JSON.stringify(entry)), {
      url: '/api/v1/logs',
      headers: { ...headers, 'content-type': 'Application/JSON; charset=utf-8', 'content-encoding': 'gzip' },
    })
    expect(isReplay(again)).toBe(true)
  })
})

describe('a request with a key', () => {
  it('has its own entries stored when other requests are sent at the same time', async () => {
    const messages = ['first', 'second', 'third']
    await Promise.all(messages.map((message) => send({ level: 'info', message }, message)))
    expect(new Set(api.queue.rows.map((row) => row['message']))).toEqual(new Set(messages))
  })

  it('leaves no record if it has no rows, and always gets the same response', async () => {
    const body = { logs: [{ level: 'info' }] }
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

it('requests with the key of another one are rejected unless they have its body', async () => {
  const bodies = [entry, { ...entry, message: 'n' }, entry, { ...entry, message: 'o' }]
  const responses = await Promise.all(bodies.map((body) => send(body, 'k')))
  expect(responses.map(({ statusCode }) => statusCode)).toEqual([202, 422, 202, 422])
  expect(api.queue.rows).toHaveLength(1)
})

it.each([
  { 'idempotency-key': '' },
  { 'idempotency-key': 'a'.repeat(256) },
  { 'idempotency-key': 'a b' },
  { 'idempotency-key': 'ü' },
  { 'sluice-idempotency': 'Body' },
  { 'sluice-idempotency': 'body, other' },
  { ...byBody, 'idempotency-key': 'k' },
])('the header %j is rejected', async (headers) => {
  expect(problemCode(await api.post(entry, { headers }))).toBe('invalid_idempotency_key')
  expect((await postLogs(api, oneScope({}), headers)).statusCode).toBe(400)
  expect(api.queue.adds).toEqual([])
})

it('a request whose body is its key is another one if its body differs, and has no key that a client can send', async () => {
  const answers = [await api.post(entry, { headers: byBody })]
  const [, digest = ''] = /^(.{22})/.exec([...api.queue.records.values()][0] ?? '') ?? []
  answers.push(await send({ ...entry, message: 'n' }, digest))
  answers.push(await api.post({ ...entry, message: 'o' }, { headers: byBody }))
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([202, 202, 202])
  expect(answers.map(isReplay)).toEqual([false, false, false])
  expect(api.queue.rows).toHaveLength(3)
})
