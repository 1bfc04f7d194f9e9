import { chunkText } from '@sluice/harness'
import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it } from 'vitest'
import { type ProblemCode, problems } from '../../src/problems.ts'
import { keyHeaders, rejections } from '../support/rejections.ts'
import { expectResponses, freshTestApi } from '../support/shared-api.ts'
import type { Body } from '../support/test-api.ts'

const api = freshTestApi()

const json = 'application/json; charset=utf-8'
/** A valid request of each protocol, how a rejection looks, and the statuses that differ from the statuses of the problems. */
const samples = [
  {
    name: 'Elasticsearch',
    url: '/elasticsearch/_bulk',
    body: '{"index":{}}\n{"message":"m"}\n',
    ok: 200,
    type: json,
    shape:
      /^\{"error":\{"root_cause":\[\{"type":"[a-z_]+","reason":".+"\}\],"type":"[a-z_]+","reason":".+"\},"status":\d{3}\}$/,
    statuses: new Map([
      ['overloaded', 429],
      ['queue_unavailable', 429],
    ]),
  },
  {
    name: 'Loki',
    url: '/loki/api/v1/push',
    body: '{"streams":[{"stream":{},"values":[["0","m"]]}]}',
    ok: 204,
    type: 'text/plain; charset=utf-8',
    shape: /^.+\n$/,
  },
  {
    name: 'Splunk',
    url: '/services/collector/event',
    body: '{"event":"m"}',
    ok: 200,
    type: json,
    shape: /^\{"text":".+","code":\d+,"detail":".+"\}$/,
    statuses: new Map([
      ['rate_limited', 503],
      ['project_not_found', 403],
    ]),
  },
  {
    name: 'Datadog',
    url: '/api/v2/logs',
    body: '[{"message":"m"}]',
    ok: 202,
    type: json,
    shape: /^\{"errors":\[\{"status":"\d{3}","title":".+","detail":".+"\}\]\}$/,
  },
]

/** The head of a request on a connection. */
const requestTo = (url: string, headers: Record<string, string>, method = 'POST'): string => {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${url} HTTP/1.1\r\nHost: x\r\n${lines.join('')}\r\n`
}

const send = (
  { url, body }: { readonly url: string; readonly body: Body },
  headers: Record<string, string | undefined> = {},
  method: 'POST' | 'GET' | 'DELETE' = 'POST',
): Promise<LightMyRequestResponse> =>
  api.post(body, { url, method, headers: { ...keyHeaders(api.key), ...headers } })

describe.each(samples)('$name', (sample) => {
  /** Checks the form of a rejection, and that it was counted once by its status. */
  function expectRejection(answer: LightMyRequestResponse): void {
    const { url: route } = sample
    expect(answer.headers['content-type']).toBe(sample.type)
    expect(answer.body).toMatch(sample.shape)
    expect(answer.headers).toHaveProperty('x-request-id')
    const counted = [...api.counts.answers].filter(([[path]]) => path === route)
    expect(counted).toContainEqual([[route, expect.any(String), String(answer.statusCode)], 1])
    expect(counted.reduce((sum, [, count]) => sum + count, 0)).toBe(1)
    expect(api.queue.adds).toEqual([])
    expect(api.bodies.status.bytes).toBe(0)
  }

  it('stores a request', async () => {
    expect((await send(sample)).statusCode).toBe(sample.ok)
    expect(api.queue.rows).toMatchObject([{ message: 'm' }])
    expect([...api.counts.answers].filter(([, count]) => count > 0)).toEqual([
      [[sample.url, 'POST', String(sample.ok)], 1],
    ])
    expect(api.counts.accepted).toBe(1)
  })

  it.each(Object.entries(rejections))('rejects a request in its own form: %s', async (code, change) => {
    const { headers = {}, body = sample.body } = await change(api)
    const answer = await send({ ...sample, body }, headers)
    expect(answer.statusCode).toBe(sample.statuses?.get(code) ?? problems[code as ProblemCode].status)
    expect('ratelimit' in answer.headers).toBe(code === 'rate_limited')
    expectRejection(answer)
  })

  it.each<[what: string, status: number, headers: Record<string, string | undefined>, method?: 'DELETE']>([
    ['without a key', 401, { authorization: undefined, 'dd-api-key': undefined }],
    ['with another method', 405, {}, 'DELETE'],
    ['with another charset', 415, { 'content-type': 'application/json; charset=utf-16' }],
    ['with a malformed media type', 415, { 'content-type': 'x' }],
  ])('rejects a request %s in its own form', async (_what, status, headers, method) => {
    const answer = await send(sample, headers, method)
    expect(answer.statusCode).toBe(status)
    expectRejection(answer)
  })

  it('rejects a body of unknown length that is too large', async () => {
    const connection = await api.connect()
    const headers = { ...keyHeaders(api.key), 'transfer-encoding': 'chunked' }
    connection.write(requestTo(sample.url, headers) + chunkText(' '.repeat(limits.bodyBytesMax + 1)))
    const [response] = await expectResponses(connection, 413)
    expect(response?.body).toMatch(sample.shape)
    expect(api.bodies.status.bytes).toBe(0)
  })

  it('rejects before the body has arrived', async () => {
    const connection = await api.connect()
    connection.write(requestTo(sample.url, { authorization: 'Bearer x', 'content-length': '100' }))
    const [response] = await expectResponses(connection, 401)
    expect(response?.body).toMatch(sample.shape)
  })
})

it('a PUT whose body has not arrived is read', async () => {
  const connection = await api.connect()
  const body = '{"index":{}}\n{"message":"m"}\n'
  const headers = { ...keyHeaders(api.key), 'content-length': String(body.length) }
  connection.write(requestTo('/elasticsearch/_bulk', headers, 'PUT'))
  await expect.poll(() => api.bodies.status.bytes).toBe(body.length)
  connection.write(body)
  const [response] = await expectResponses(connection, 200)
  expect(response?.headers).not.toHaveProperty('connection', 'close')
})
