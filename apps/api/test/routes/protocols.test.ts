import { chunkText, HttpConnection } from '@sluice/harness'
import { generateApiKey } from '@sluice/projects'
import { QueueUnavailableError } from '@sluice/queue'
import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { attemptLimits } from '../../src/authentication/failed-attempts.ts'
import { buildTestApi, type TestApi } from '../support/test-api.ts'

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

/** A valid request of each protocol, and how a rejection looks. */
const samples = [
  {
    name: 'Elasticsearch',
    url: '/elasticsearch/_bulk',
    body: '{"index":{}}\n{"message":"m"}\n',
    ok: 200,
    type: 'application/json; charset=utf-8',
    shape:
      /^\{"error":\{"root_cause":\[\{"type":"[a-z_]+","reason":".+"\}\],"type":"[a-z_]+","reason":".+"\},"status":\d{3}\}$/,
    unavailable: 429,
    limited: 429,
    missingProject: 404,
  },
  {
    name: 'Loki',
    url: '/loki/api/v1/push',
    body: '{"streams":[{"stream":{},"values":[["0","m"]]}]}',
    ok: 204,
    type: 'text/plain; charset=utf-8',
    shape: /^.+\n$/,
    unavailable: 503,
    limited: 429,
    missingProject: 404,
  },
  {
    name: 'Splunk',
    url: '/services/collector/event',
    body: '{"event":"m"}',
    ok: 200,
    type: 'application/json; charset=utf-8',
    shape: /^\{"text":".+","code":\d+,"detail":".+"\}$/,
    unavailable: 503,
    limited: 503,
    missingProject: 403,
  },
  {
    name: 'Datadog',
    url: '/api/v2/logs',
    body: '[{"message":"m"}]',
    ok: 202,
    type: 'application/json; charset=utf-8',
    shape: /^\{"errors":\[\{"status":"\d{3}","title":".+","detail":".+"\}\]\}$/,
    unavailable: 503,
    limited: 429,
    missingProject: 404,
  },
] as const
type Sample = (typeof samples)[number]

const keyHeaders = (key: string): Record<string, string> => ({
  authorization: `Bearer ${key}`,
  'dd-api-key': key,
})

const send = (
  { url, body }: Sample,
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

  it.each<[string, () => Promise<LightMyRequestResponse>, (sample: Sample) => number]>([
    ['without a key', () => send(sample, { authorization: undefined, 'dd-api-key': undefined }), () => 401],
    ['with an unknown key', () => send(sample, keyHeaders(generateApiKey())), () => 401],
    [
      'with a key that may only read',
      () => send(sample, keyHeaders(api.registry.addKey({ scopes: ['read'] }).key)),
      () => 403,
    ],
    [
      'of a disabled project',
      () => {
        api.registry.addProject({ enabled: false })
        return send(sample)
      },
      ({ missingProject }) => missingProject,
    ],
    ['with another method', () => send(sample, {}, 'DELETE'), () => 405],
    ['with an unknown encoding', () => send(sample, { 'content-encoding': 'lz4' }), () => 415],
    [
      'with another charset',
      () => send(sample, { 'content-type': 'application/json; charset=utf-16' }),
      () => 415,
    ],
    ['with a malformed media type', () => send(sample, { 'content-type': 'x' }), () => 415],
    ['with a body that is not gzip', () => send(sample, { 'content-encoding': 'gzip' }), () => 400],
    [
      'with a large body',
      () => send({ ...sample, body: ' '.repeat(limits.bodyBytesMax + 1) } as unknown as Sample),
      () => 413,
    ],
    [
      'during overload',
      async () => {
        await api.signals.set('queue_depth', 90)
        return send(sample)
      },
      ({ unavailable }) => unavailable,
    ],
    [
      'above the rate limit',
      () => {
        api.registry.addProject({ limits: { entriesPerSecond: 1, burstEntries: 1 } })
        return send(sample)
      },
      ({ limited }) => limited,
    ],
    [
      'without Redis',
      () => {
        api.queue.add = () => Promise.reject(new QueueUnavailableError('no answer'))
        return send(sample)
      },
      ({ unavailable }) => unavailable,
    ],
    [
      'with a fault of the server',
      () => {
        api.queue.add = () => Promise.reject(new TypeError('unexpected'))
        return send(sample)
      },
      () => 500,
    ],
  ])('rejects a request %s in its own form', async (_what, request, status) => {
    const answer = await request()
    expect(answer.statusCode).toBe(status(sample))
    expectRejection(answer)
  })

  it('tells an address that guesses keys to wait', async () => {
    for (let i = 0; i < attemptLimits.addressBurst; i += 1) await send(sample, keyHeaders(generateApiKey()))
    const answer = await send(sample, keyHeaders(generateApiKey()))
    expect(answer.statusCode).toBe(sample.limited)
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  })

  it('names its methods in a 405', async () => {
    const { headers, body } = await send(sample, {}, 'GET')
    const others: Readonly<Record<string, string>> = { Elasticsearch: ', PUT', Splunk: ', OPTIONS' }
    expect(headers.allow).toBe(`POST${others[sample.name] ?? ''}`)
    expect(body).toContain('Send logs with POST.')
  })

  it.each([undefined, 'text/plain', 'application/octet-stream'])(
    'reads a body of the type %s',
    async (type) => {
      const { statusCode } = await send(sample, { 'content-type': type })
      // Loki's other format is compressed.
      expect(statusCode).toBe(sample.name === 'Loki' ? 400 : sample.ok)
    },
  )

  it('rejects before the body has arrived', async () => {
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    const connection = await HttpConnection.open((api.app.server.address() as AddressInfo).port)
    connection.write(
      `POST ${sample.url} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Length: 100\r\n\r\n`,
    )
    await expect.poll(() => connection.responses.length, { timeout: 3_000 }).toBe(1)
    expect(connection.responses[0]?.status).toBe(401)
    expect(connection.responses[0]?.body).toMatch(sample.shape)
    connection.destroy()
  })

  it('rejects a body of unknown length above the limit', async () => {
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    const connection = await HttpConnection.open((api.app.server.address() as AddressInfo).port)
    const headers = Object.entries(keyHeaders(api.key)).map(([name, value]) => `${name}: ${value}\r\n`)
    connection.write(
      `POST ${sample.url} HTTP/1.1\r\nHost: x\r\n${headers.join('')}Transfer-Encoding: chunked\r\n\r\n`,
    )
    for (let sent = 0; sent <= limits.bodyBytesMax; sent += 65_536)
      connection.write(chunkText(' '.repeat(65_536)))
    await expect.poll(() => connection.responses.length, { timeout: 5_000 }).toBe(1)
    expect(connection.responses[0]?.status).toBe(413)
    expect(connection.responses[0]?.body).toMatch(sample.shape)
    connection.destroy()
  })
})

it.each(['/elasticsearch', '/services/collector/health', '/api/v1/validate'])(
  'a path without records names its methods in a 405: %s',
  async (url) => {
    const { statusCode, headers, body } = await api.post('{}', { url })
    expect([statusCode, headers.allow]).toEqual([405, 'GET, HEAD'])
    expect(body).toContain('Use GET or HEAD.')
  },
)

it('a PUT whose body has not arrived is read', async () => {
  await api.app.listen({ host: '127.0.0.1', port: 0 })
  const connection = await HttpConnection.open((api.app.server.address() as AddressInfo).port)
  const body = '{"index":{}}\n{"message":"m"}\n'
  connection.write(
    `PUT /elasticsearch/_bulk HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.key}\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  await expect.poll(() => api.bodies.status.bytes, { timeout: 3_000 }).toBe(body.length)
  connection.write(body)
  await expect.poll(() => connection.responses.length, { timeout: 3_000 }).toBe(1)
  expect(connection.responses[0]).toMatchObject({ status: 200 })
  expect(connection.responses[0]?.headers).not.toHaveProperty('connection', 'close')
  connection.destroy()
})
