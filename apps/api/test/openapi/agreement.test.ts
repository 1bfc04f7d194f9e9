import { generateApiKey } from '@sluice/projects'
import { queueNames } from '@sluice/queue'
import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { attemptLimits } from '@sluice/access'
import { connectionLimits } from '../../src/connections/connection-limits.ts'
import { problems, type ProblemCode } from '../../src/problems.ts'
import { type Change, rejections } from '../support/rejections.ts'
import { exchange, freshTestApi, rebuild } from '../support/shared-api.ts'
import { type Body, buildTestApi, type TestApi } from '../support/test-api.ts'
import { encodeLogs } from '@sluice/harness/otlp-logs'
import { decodeAnswer, oneScope, postLogs, protobuf } from '../protocols/otlp/otlp-api.ts'
import { Described, type Answer, type Document } from './described.ts'

const entry = { level: 'info', message: 'm' }

const api = freshTestApi()
/** Shared by all tests, so that its schemas are compiled only once. */
let described: Described

beforeAll(async () => {
  const temporary = buildTestApi()
  described = new Described((await temporary.app.inject('/openapi.json')).json<Document>())
  await temporary.close()
})

type Send = () => Promise<LightMyRequestResponse | Answer>

const post =
  (...args: Parameters<TestApi['post']>): Send =>
  () =>
    api.post(...args)

/** Sends a request on a connection of its own. */
const sendRaw =
  (request: string): Send =>
  () =>
    exchange(api, request)

const guessKey: Send = () => api.post(entry, { headers: { authorization: `Bearer ${generateApiKey()}` } })

/** Requests for the problems that do not depend on the protocol. */
const common = Object.entries(rejections).map(([code, change]): [string, Send] => [
  code,
  async () => {
    const { headers = {}, body = entry } = await change(api)
    return api.post(body, { headers })
  },
])

/** A request for each code, except for `shutting_down`: the process does not accept connections any more by then. */
const requests: Readonly<Record<string, Send>> = {
  ...Object.fromEntries(common),
  invalid_json: post('{"level":"info"'),
  invalid_utf8: post(Buffer.from([0xff])),
  invalid_protobuf: post(Buffer.from([0xff]), { headers: protobuf }),
  empty_body: post(''),
  invalid_body: post({ logs: {} }),
  invalid_entry: post({ level: 'fatal', message: 'm' }),
  too_many_entries: post(Array.from({ length: limits.entriesPerRequestMax + 1 }, () => entry)),
  bad_request: sendRaw('POST\r\n\r\n'),
  not_found: post(entry, { url: '/nowhere' }),
  method_not_allowed: post(undefined, { method: 'GET' }),
  request_timeout: async () => {
    const impatient = { ...connectionLimits, headersMs: 100, requestMs: 200, deadlineIntervalMs: 50 }
    await rebuild(api, { connectionLimits: impatient })
    return sendRaw('POST /v1/logs HTTP/1.1\r\n')()
  },
  unsupported_media_type: post('x', { headers: { 'content-type': 'text/plain' } }),
  idempotency_key_reused: async () => {
    const headers = { 'idempotency-key': 'k' }
    await api.post(entry, { headers })
    return api.post([entry], { headers })
  },
  too_many_idempotency_keys: () => {
    api.queue.usedUp.set(queueNames('test').idempotencyQuotaKey('demo'), 1_000)
    return api.post(entry, { headers: { 'idempotency-key': 'k' } })
  },
  too_many_failed_attempts: async () => {
    for (let i = 0; i < attemptLimits.addressBurst; i += 1) await guessKey()
    return guessKey()
  },
  headers_too_large: sendRaw(
    `POST /v1/logs HTTP/1.1\r\nX-Note: ${'a'.repeat(connectionLimits.headersBytesMax)}\r\n\r\n`,
  ),
  unsupported_transfer_encoding: sendRaw(
    'POST /v1/logs HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
  ),
  not_ready: () => {
    api.readiness = { ready: false, reasons: ['the connection to Redis is reconnecting'] }
    return api.app.inject('/readyz')
  },
}

function asAnswer(response: LightMyRequestResponse | Answer): Answer {
  return 'statusCode' in response
    ? { ...response, status: response.statusCode, body: response.body, bytes: response.rawPayload }
    : response
}

describe('a problem is documented', () => {
  it.each(Object.entries(requests))('%s', async (code, send) => {
    const answer = asAnswer(await send())
    const path = code === 'not_ready' ? described.document.paths['/readyz']?.['get'] : described.post()
    if (path === undefined) throw new Error('not documented')
    expect(described.undescribed(path, answer)).toEqual([])
    expect(answer.body).toContain(code)
    expect(api.bodies.status.bytes).toBe(0)
  })

  it('for every code except shutting_down', () => {
    const codes = [...Object.keys(requests), 'shutting_down']
    expect(codes.toSorted()).toEqual(Object.keys(problems).toSorted())
  })
})

const tooMany = (): Change => ({
  body: encodeLogs(oneScope(...Array.from({ length: limits.recordsPerRequestMax + 1 }, () => ({})))),
})

it.each(Object.entries({ ...rejections, too_many_entries: tooMany }))(
  'a rejected request in Protocol Buffers gets a status: %s',
  async (code, change) => {
    const { headers = {}, body = encodeLogs(oneScope({})) } = await change(api)
    const response = await api.post(body, { headers: { ...protobuf, ...headers } })
    const answer = asAnswer(response)
    expect(described.undescribed(described.post(), answer)).toEqual([])
    const { status } = problems[code as ProblemCode]
    expect(response.statusCode).toBe(status)
    expect(decodeAnswer(status, response.rawPayload)).toEqual({
      ...(described.post().responses[status]?.content?.['application/x-protobuf']?.example as object),
      message: expect.stringMatching(new RegExp(`^${code}: .`)) as unknown,
    })
    expect(api.bodies.status.bytes).toBe(0)
    expect('retry-after' in response.headers).toBe(status === 429 || status === 503)
  },
)

describe('an accepted request', () => {
  beforeEach(() => {
    api.registry.addProject({ limits: { entriesPerSecond: 100, burstEntries: 200 } })
    api.buckets.level = { entries: 200, bytes: 0 }
  })

  it.each(['application/json', 'application/x-ndjson'])('can be each example of %s', async (type) => {
    const { examples = {} } = described.post().requestBody?.content[type] ?? {}
    expect(Object.keys(examples)).not.toEqual([])
    for (const { value } of Object.values(examples)) {
      const before = api.queue.rows.length
      const answer = await api.post(value as object, { headers: { 'content-type': type } })
      expect(described.undescribed(described.post(), asAnswer(answer))).toEqual([])
      expect(answer.statusCode).toBe(202)
      expect(answer.headers).toHaveProperty('ratelimit')
      expect(answer.json()).not.toHaveProperty('errors')
      expect(api.queue.rows.length).toBeGreaterThan(before)
    }
  })

  it.each<[what: string, body: Body, headers: Record<string, string>]>([
    ['partly rejected', [entry, 7], {}],
    ['rejected', [{}], {}],
    ['empty', [], {}],
    ['a replay', entry, { 'idempotency-key': 'k' }],
  ])('may be %s', async (_what, body, headers) => {
    await api.post(body, { headers })
    expect(described.undescribed(described.post(), asAnswer(await api.post(body, { headers })))).toEqual([])
  })

  it('may be OTLP, and partly rejected', async () => {
    const json = await api.post('{"resourceLogs":[{"scopeLogs":[{"logRecords":[{},7]}]}]}')
    expect(described.undescribed(described.post(), asAnswer(json))).toEqual([])
    const errorMessage =
      '1 of 2 records were rejected (wrong_type 1). Record 1: an element of logRecords must be an object.'
    expect(json.json()).toEqual({ partialSuccess: { rejectedLogRecords: '1', errorMessage } })
    const bytes = await postLogs(api, oneScope({ body: 'm' }))
    expect(described.undescribed(described.post(), asAnswer(bytes))).toEqual([])
    expect(decodeAnswer(200, bytes.rawPayload)).toEqual({})
  })
})
