import {
  chunkText,
  entryText,
  type HttpConnection,
  type HttpResponse,
  postHead,
  postText,
} from '@sluice/harness'
import { limits } from '@sluice/schema'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { connectionLimits } from '../src/connections/connection-limits.ts'
import { expectResponses, sharedTestApi } from './support/shared-api.ts'

const api = sharedTestApi()
let connection: HttpConnection

beforeEach(async () => {
  connection = await api.connect()
})

const head = (lines: readonly string[], key = api.key): string => postHead(key, lines)
const post = (body: string, lines?: readonly string[]): string => postText(api.key, body, lines)
const chunked = (chunks: string): string => head(['Transfer-Encoding: chunked']) + chunks
const length = `Content-Length: ${entryText.length}`

/** Expects that all requests on the connection get these statuses. */
const expectStatuses = (...statuses: number[]) => expectResponses(connection, ...statuses)

/** Expects one problem document, which agrees with its status and headers, and that nothing is enqueued. */
async function expectProblem(status: number, code: string): Promise<Readonly<Record<string, string>>> {
  const [response] = await expectStatuses(status)
  const { headers = {}, body = '' }: Partial<HttpResponse> = response ?? {}
  expect(headers['content-type']).toMatch(/^application\/problem\+json/)
  expect(JSON.parse(body)).toMatchObject({ status, code, requestId: headers['x-request-id'] })
  expect(api.queue.adds).toEqual([])
  return headers
}

describe('a request', () => {
  it('gets its response in order when requests are pipelined', async () => {
    const texts = Array.from({ length: 20 }, (_, i) => (i % 3 === 2 ? '{' : entryText))
    connection.write(texts.map((text, i) => post(text, [`X-Request-Id: r${i}`])).join(''))
    const answers = await expectStatuses(...texts.map((text) => (text === entryText ? 202 : 400)))
    expect(answers.map(({ headers }) => headers['x-request-id'])).toEqual(texts.map((_, i) => `r${i}`))
    expect(api.queue.rows).toHaveLength(14)
  })

  it('with Expect: 100-continue gets 100 Continue and is accepted', async () => {
    connection.write(head(['Expect: 100-continue', length]))
    await expect.poll(() => connection.received).toContain('HTTP/1.1 100 Continue')
    expect(connection.responses).toEqual([])
    connection.write(entryText)
    await expectStatuses(202)
  })

  it('with two idempotency keys is rejected', async () => {
    connection.write(post(entryText, ['Idempotency-Key: k', 'Idempotency-Key: k']))
    await expectProblem(400, 'invalid_idempotency_key')
  })

  it('with two Authorization headers, or two media types, uses only the first', async () => {
    connection.write(head(['Authorization: Bearer unknown', length]) + entryText)
    connection.write(head([`Authorization: Bearer ${api.key}`, length], 'unknown') + entryText)
    connection.write(post(entryText, ['Content-Type: application/x-ndjson']))
    const [, , last] = await expectStatuses(202, 401, 202)
    expect(last?.body).toContain('"status":"accepted"')
    expect(api.queue.rows).toHaveLength(2)
  })

  it('may have trailers, which are ignored', async () => {
    const trailers = '0\r\nAuthorization: Bearer unknown\r\nContent-Encoding: gzip\r\n\r\n'
    connection.write(chunked(chunkText(entryText) + trailers) + post(entryText))
    await expectStatuses(202, 202)
    expect(api.queue.rows).toHaveLength(2)
  })

  it.each([
    ['that asks for an upgrade', () => post(entryText, ['Connection: Upgrade', 'Upgrade: websocket'])],
    ['without a host', () => post(entryText).replace('Host: localhost\r\n', '')],
    ['with an unknown expectation', () => post(entryText, ['Expect: a-miracle'])],
    ['in CHUNKED', () => `${head(['Transfer-Encoding: CHUNKED']) + chunkText(entryText)}0\r\n\r\n`],
    ['of HTTP/1.0', () => post(entryText).replace('HTTP/1.1', 'HTTP/1.0')],
  ])('%s is accepted', async (_what, text) => {
    connection.write(text())
    await expectStatuses(202)
  })
})

it('a request that is rejected before its body gets one response, also if garbage follows', async () => {
  connection.write(head(['Transfer-Encoding: chunked'], 'unknown'))
  await expectProblem(401, 'unauthorized')
  for (; !connection.isClosed; await sleep(20)) connection.write('no chunk at all\r\n')
  expect(connection.responses).toHaveLength(1)
})

it('a body that is too large is rejected by its Content-Length, before any byte was sent', async () => {
  connection.write(head([`Content-Length: ${limits.bodyBytesMax + 1}`]))
  await expectProblem(413, 'body_too_large')
})

const withLines =
  (...lines: string[]) =>
  (): string =>
    head(lines) + entryText

it.each<[what: string, text: () => string]>([
  ['garbage', () => 'garbage\r\n\r\n'],
  ['an unknown method', () => 'BREW /v1/logs HTTP/1.1\r\nHost: x\r\n\r\n'],
  // Requests that a proxy may read differently.
  ['a length and chunks', withLines('Content-Length: 30', 'Transfer-Encoding: chunked')],
  ['two lengths', withLines('Content-Length: 30', 'Content-Length: 31')],
  ['a space before a colon', withLines('Content-Length : 30')],
  ['chunked, but not last', withLines('Transfer-Encoding: chunked, identity')],
  ['a folded length', withLines('Content-Length:', ' 30')],
  ['a bare line feed in a header', withLines('X-Note: a\nContent-Length: 30')],
  ['a chunk size that overflows', () => chunked(`fffffffffffffffff\r\n${entryText}\r\n0\r\n\r\n`)],
  ['a bare line feed after a chunk size', () => chunked(`1e\n${entryText}\n0\n\n`)],
  ['a long chunk extension', () => chunked(`1e;${'a'.repeat(20_000)}\r\n${entryText}\r\n0\r\n\r\n`)],
])('an invalid HTTP request gets a problem document: %s', async (_what, text) => {
  connection.write(Buffer.from(text(), 'latin1'))
  await expectProblem(400, 'bad_request')
})

describe('a transfer encoding other than chunked', () => {
  it.each(['xchunked', 'identity', 'gzip, chunked', 'GZIP,chunked', 'deflate\r\nTransfer-Encoding: chunked'])(
    'is rejected, and the connection is closed: %j',
    async (encoding) => {
      connection.write(head([`Transfer-Encoding: ${encoding}`]) + chunkText(entryText))
      const headers = await expectProblem(501, 'unsupported_transfer_encoding')
      expect(headers['connection']).toBe('close')
      await expect.poll(() => connection.isEnded).toBe(true)
    },
  )

  it('is rejected for other methods and without a key', async () => {
    connection.write('GET /livez HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n')
    await expectProblem(501, 'unsupported_transfer_encoding')
  })
})

it.each(['http://localhost/v1/logs', 'https://x:1/v1/logs?a=b', '/v1/%6Cogs', '/api/v1/%6c%6f%67%73'])(
  'every spelling of the path is the same resource: %s',
  async (target) => {
    connection.write(`GET ${target} HTTP/1.1\r\n\r\n`)
    const headers = await expectProblem(405, 'method_not_allowed')
    expect(headers['allow']).toBe('POST')
    connection.write(post(entryText).replace('/v1/logs', target))
    await expectStatuses(405, 202)
  },
)

it.each(['http://localhost/v1/log', 'http://localhost', '/v1%2Flogs', '/v1/logs%3F'])(
  'another path is another resource: %s',
  async (target) => {
    connection.write(`GET ${target} HTTP/1.1\r\n\r\n`)
    await expectProblem(404, 'not_found')
  },
)

/** The target, the name and the value have this many bytes together. */
const ofBytes = (bytes: number): string =>
  `GET /livez HTTP/1.1\r\nX: ${'a'.repeat(bytes - '/livezX'.length)}\r\n\r\n`

it.each([
  ['1,000 lines', `GET /livez HTTP/1.1\r\n${'a: b\r\n'.repeat(1_000)}\r\n`, 200],
  ['1,001 lines', `GET /livez HTTP/1.1\r\n${'a: b\r\n'.repeat(1_001)}\r\n`, 431],
  ['one byte less than 16 KiB', ofBytes(connectionLimits.headersBytesMax - 1), 200],
  ['16 KiB', ofBytes(connectionLimits.headersBytesMax), 431],
])('the documented limits of headers are exact: %s', async (_what, text, status) => {
  connection.write(text)
  if (status === 431) await expectProblem(status, 'headers_too_large')
  else await expectStatuses(status)
})

it('a shutdown waits for the responses to requests in flight, and not for idle connections', async () => {
  const idle = await api.connect()
  idle.write(post(entryText))
  await expectResponses(idle, 202)
  api.queue.adds.length = 0
  api.queue.holding = true
  connection.write(post(entryText))
  await expect.poll(() => api.queue.adds).toHaveLength(1)
  const closed = api.app.close()
  api.queue.adds[0]?.confirm()
  await expectStatuses(202)
  await closed
})
