import type { LightMyRequestResponse } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { oneScope, postLogs } from '../protocols/otlp/otlp-api.ts'
import { problemCode } from '../support/problem.ts'
import { type Body, buildTestApi, type TestApi } from '../support/test-api.ts'

const header = { 'sluice-idempotency': 'body' }
const entry = { level: 'info', message: 'm' }

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

const send = (body: Body, headers: Record<string, string> = header): Promise<LightMyRequestResponse> =>
  api.post(body, { headers })
const isReplay = ({ headers }: LightMyRequestResponse): boolean => headers['idempotency-replayed'] === 'true'

describe('a request whose body is its key', () => {
  it.each([
    ['an entry', entry],
    ['a batch', [entry, { level: 'info' }, entry]],
    ['an entry that must be parsed', { ...entry, unknown: 1 }],
  ])('is stored once, and gets the same answer again: %s', async (_what, body) => {
    const first = await send(body)
    const rows = api.queue.rows.length
    const second = await send(body)
    expect([isReplay(first), isReplay(second)]).toEqual([false, true])
    expect(second.body).toBe(first.body)
    expect(api.queue.rows).toHaveLength(rows)
  })

  it('is another request if its body differs', async () => {
    const answers = [await send(entry), await send({ ...entry, message: 'n' })]
    expect(answers.map(isReplay)).toEqual([false, false])
    expect(api.queue.rows).toHaveLength(2)
  })

  it('is the same request under both paths, and with another encoding', async () => {
    const body = JSON.stringify(entry)
    await send(body)
    const { gzipSync } = await import('node:zlib')
    const again = await api.post(gzipSync(body), {
      url: '/api/v1/logs',
      headers: { ...header, 'content-encoding': 'gzip' },
    })
    expect(isReplay(again)).toBe(true)
  })

  it('may be OTLP, and more than one chunk', async () => {
    const logs = oneScope(...Array.from({ length: 5_000 }, (_, i) => ({ body: String(i) })))
    const first = await postLogs(api, logs, header)
    const second = await postLogs(api, logs, header)
    expect([isReplay(first), isReplay(second)]).toEqual([false, true])
    expect(new Set(api.queue.rows.map(({ message }) => message)).size).toBe(5_000)
    expect(api.queue.rows).toHaveLength(5_000)
  })

  it('does not collide with a request that has the digest as its key', async () => {
    await send(entry)
    const [, digest = ''] = /^(.{22})/.exec([...api.queue.records.values()][0] ?? '') ?? []
    const other = await send({ ...entry, message: 'n' }, { 'idempotency-key': digest })
    expect(other.statusCode).toBe(202)
  })
})

describe('Sluice-Idempotency', () => {
  it.each([
    ['has an unknown value', { 'sluice-idempotency': 'Body' }],
    ['is empty', { 'sluice-idempotency': '' }],
    ['is sent twice', { 'sluice-idempotency': 'body, body' }],
    ['is sent together with a key', { ...header, 'idempotency-key': 'k' }],
  ])('is rejected if it %s', async (_what, headers) => {
    expect(problemCode(await send(entry, headers))).toBe('invalid_idempotency_key')
    expect((await postLogs(api, oneScope({}), headers)).statusCode).toBe(400)
    expect(api.queue.adds).toEqual([])
  })
})
