import { chunkText, entryText, HttpConnection, type HttpResponse, postHead, postText } from '@sluice/harness'
import { limits } from '@sluice/schema'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connectionLimits } from '../src/connections/connection-limits.ts'
import { type ProblemCode, problems } from '../src/problems.ts'
import { buildTestApi, type TestApi } from './support/test-api.ts'

let api: TestApi
let connection: HttpConnection

beforeAll(async () => {
  api = buildTestApi()
  await api.app.listen({ host: '127.0.0.1', port: 0 })
})
beforeEach(async () => {
  api.queue.adds.length = 0
  connection = await HttpConnection.open((api.app.server.address() as AddressInfo).port)
})
afterEach(() => connection.destroy())
afterAll(() => api.close())

const head = (lines: readonly string[], key = api.key): string => postHead(key, lines)
const post = (body: string, lines?: readonly string[]): string => postText(api.key, body, lines)

/** Waits for the response with this index. */
async function response(index = 0): Promise<HttpResponse> {
  await expect.poll(() => connection.responses.length, { timeout: 3_000 }).toBeGreaterThan(index)
  const found = connection.responses[index]
  if (found === undefined) throw new Error('no response')
  return found
}

/** The code of the problem document with this index, which must agree with its status and headers. */
async function problemCode(index = 0): Promise<ProblemCode> {
  const { status, headers, body } = await response(index)
  expect(headers['content-type']).toMatch(/^application\/problem\+json/)
  const document = JSON.parse(body) as { code: ProblemCode }
  expect(document).toMatchObject({ status, requestId: headers['x-request-id'] })
  expect(problems[document.code].status).toBe(status)
  return document.code
}

describe('a request', () => {
  it('is accepted in chunks of any size', async () => {
    connection.write(head(['Transfer-Encoding: chunked']))
    for (const character of '{"level":"info","message":"grüße 😀"}') connection.write(chunkText(character))
    connection.write('0\r\n\r\n')
    expect((await response()).status).toBe(202)
    expect(api.queue.rows).toMatchObject([{ message: 'grüße 😀' }])
  })

  it('is accepted byte by byte', async () => {
    for (const byte of post(entryText)) {
      connection.write(byte)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect((await response()).status).toBe(202)
  })

  it('is answered in order when requests are pipelined', async () => {
    const texts = Array.from({ length: 20 }, (_, i) => (i % 3 === 2 ? '{' : entryText))
    connection.write(texts.map((text, i) => post(text, [`X-Request-Id: r${i}`])).join(''))
    await response(19)
    const answers = connection.responses.map(({ status, headers }) => `${headers['x-request-id']} ${status}`)
    expect(answers).toEqual(texts.map((text, i) => `r${i} ${text === entryText ? 202 : 400}`))
    expect(api.queue.rows).toHaveLength(14)
  })

  it('ends with its body', async () => {
    connection.write(head([`Content-Length: ${entryText.length}`]) + entryText + post(entryText))
    expect((await response(1)).status).toBe(202)
    expect(api.queue.rows).toHaveLength(2)
  })

  it('of HTTP/1.0 is answered, and the connection is closed', async () => {
    connection.write(post(entryText).replace('HTTP/1.1', 'HTTP/1.0'))
    expect((await response()).status).toBe(202)
    await expect.poll(() => connection.received).toMatch(/connection: close/i)
  })

  it('with Expect: 100-continue gets 100 Continue and is accepted', async () => {
    connection.write(head(['Expect: 100-continue', `Content-Length: ${entryText.length}`]))
    await expect.poll(() => connection.received).toContain('HTTP/1.1 100 Continue')
    expect(connection.responses).toEqual([])
    connection.write(entryText)
    expect((await response()).status).toBe(202)
  })

  it.each([['k'], ['other'], ['']])('with two idempotency keys is rejected: %s', async (second) => {
    connection.write(post(entryText, ['Idempotency-Key: k', `Idempotency-Key: ${second}`]))
    expect(await problemCode()).toBe('invalid_idempotency_key')
    expect(api.queue.adds).toEqual([])
  })

  it('with two Authorization headers uses only the first', async () => {
    connection.write(
      head(['Authorization: Bearer unknown', `Content-Length: ${entryText.length}`]) + entryText,
    )
    expect((await response()).status).toBe(202)
    const lines = [`Authorization: Bearer ${api.key}`, `Content-Length: ${entryText.length}`]
    connection.write(head(lines, 'unknown') + entryText)
    expect(await problemCode(1)).toBe('unauthorized')
    expect(api.queue.rows).toHaveLength(1)
  })
})

describe('a request with an invalid key is answered before its body arrives', () => {
  it('if no byte of the body was sent', async () => {
    connection.write(head([`Content-Length: ${entryText.length}`], 'unknown'))
    expect(await problemCode()).toBe('unauthorized')
  })

  it('if it has Expect: 100-continue, and gets no 100 Continue', async () => {
    connection.write(head(['Expect: 100-continue', 'Content-Length: 1000'], 'unknown'))
    expect(await problemCode()).toBe('unauthorized')
    expect(connection.received).not.toContain('100 Continue')
  })

  it('and is answered once, also if garbage follows', async () => {
    connection.write(head(['Transfer-Encoding: chunked'], 'unknown'))
    expect(await problemCode()).toBe('unauthorized')
    connection.write('no chunk at all\r\n')
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(connection.responses).toHaveLength(1)
  })

  it('and the next request on the connection is answered after the body was discarded', async () => {
    connection.write(head([`Content-Length: ${entryText.length}`], 'unknown') + entryText + post(entryText))
    expect(await problemCode()).toBe('unauthorized')
    expect((await response(1)).status).toBe(202)
  })
})

describe('a body that is too large', () => {
  it('is rejected by its Content-Length, before any byte was sent', async () => {
    connection.write(head([`Content-Length: ${limits.bodyBytesMax + 1}`]))
    expect(await problemCode()).toBe('body_too_large')
  })

  it('is rejected in chunks once it exceeds the limit, and is not read to its end', async () => {
    connection.write(head(['Transfer-Encoding: chunked']))
    const part = chunkText('a'.repeat(512 * 1024))
    for (let i = 0; i <= 10; i += 1) connection.write(part)
    expect(await problemCode()).toBe('body_too_large')
    expect(api.queue.adds).toEqual([])
  })
})

describe('an invalid HTTP request gets a problem document', () => {
  const bad: readonly (readonly [what: string, text: () => string, code: ProblemCode])[] = [
    ['garbage', () => 'garbage\r\n\r\n', 'bad_request'],
    ['TLS', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'bad_request'],
    ['HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'bad_request'],
    ['an unknown method', () => 'BREW /v1/logs HTTP/1.1\r\nHost: x\r\n\r\n', 'bad_request'],
    ['an unknown version', () => 'POST /v1/logs HTTP/9.9\r\nHost: x\r\n\r\n', 'bad_request'],
    ['a header without a colon', () => 'POST /v1/logs HTTP/1.1\r\nHost x\r\n\r\n', 'bad_request'],
    ['a NUL in a header', () => post(entryText, ['X-Note: a\0b']), 'bad_request'],
    ['a negative length', () => head(['Content-Length: -1']), 'bad_request'],
    ['a length in hexadecimal', () => head(['Content-Length: 0x1e']) + entryText, 'bad_request'],
    ['a length that is not a number', () => head(['Content-Length: many']) + entryText, 'bad_request'],
    [
      'headers of 20,000 bytes',
      () => post(entryText, [`X-Note: ${'a'.repeat(20_000)}`]),
      'headers_too_large',
    ],
    ['a path of 20,000 bytes', () => `GET /${'a'.repeat(20_000)} HTTP/1.1\r\n`, 'headers_too_large'],
  ]

  it.each(bad)('%s', async (_what, text, code) => {
    connection.write(Buffer.from(text(), 'latin1'))
    expect(await problemCode()).toBe(code)
    expect(api.queue.adds).toEqual([])
  })

  it.each([
    ['without a host', () => post(entryText).replace('Host: localhost\r\n', '')],
    ['with an unknown expectation', () => post(entryText, ['Expect: a-miracle'])],
  ])('%s, if it is not accepted', async (_what, text) => {
    connection.write(text())
    const { status, headers } = await response()
    expect(headers['x-request-id']).toMatch(/./)
    expect(status === 202 || headers['content-type']?.startsWith('application/problem+json')).toBe(true)
  })

  it('also after an earlier request was answered', async () => {
    connection.write(post(entryText))
    expect((await response()).status).toBe(202)
    connection.write('no HTTP\r\n\r\n')
    expect(await problemCode(1)).toBe('bad_request')
  })

  it('if the body is shorter than its Content-Length', async () => {
    connection.write(head([`Content-Length: ${entryText.length + 1}`]) + entryText)
    connection.end()
    expect(await problemCode()).toBe('bad_request')
    expect(api.queue.adds).toEqual([])
  })
})

describe('a transfer encoding other than chunked', () => {
  it.each([
    'xchunked',
    'gzip',
    'identity',
    'gzip, chunked',
    'identity, chunked',
    'GZIP,chunked',
    'deflate\r\nTransfer-Encoding: chunked',
  ])('is rejected, and the connection is closed: %j', async (encoding) => {
    connection.write(head([`Transfer-Encoding: ${encoding}`]) + chunkText(entryText))
    expect(await problemCode()).toBe('unsupported_transfer_encoding')
    expect((await response()).headers['connection']).toBe('close')
    await expect.poll(() => connection.isEnded).toBe(true)
    expect(api.queue.adds).toEqual([])
  })

  it('is rejected for other methods and without a key', async () => {
    connection.write('GET /livez HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n')
    expect(await problemCode()).toBe('unsupported_transfer_encoding')
  })

  it('is not chunked in another case', async () => {
    connection.write(`${head(['Transfer-Encoding: CHUNKED']) + chunkText(entryText)}0\r\n\r\n`)
    expect((await response()).status).toBe(202)
  })
})

describe('every spelling of the path is the same resource', () => {
  it.each([
    'http://localhost/v1/logs',
    'https://x:1/v1/logs?a=b',
    '/v1/%6Cogs',
    '/api/v1/%6c%6f%67%73',
    '/v1/logs?x',
  ])('%s', async (target) => {
    connection.write(`GET ${target} HTTP/1.1\r\n\r\n`)
    expect(await problemCode()).toBe('method_not_allowed')
    expect((await response()).headers['allow']).toBe('POST')
    connection.write(post(entryText).replace('/v1/logs', target))
    expect((await response(1)).status).toBe(202)
  })

  it.each(['http://localhost/v1/log', 'http://localhost', '/v1%2Flogs', '/v1/logs%3F'])(
    'and others are not: %s',
    async (target) => {
      connection.write(`GET ${target} HTTP/1.1\r\n\r\n`)
      expect(await problemCode()).toBe('not_found')
    },
  )
})

const lines = (count: number): string => 'a: b\r\n'.repeat(count)
/** The target, the name and the value have this many bytes together. */
const ofBytes = (bytes: number): string =>
  `GET /livez HTTP/1.1\r\nX: ${'a'.repeat(bytes - '/livezX'.length)}\r\n\r\n`

describe('the documented limits of headers are exact', () => {
  it.each([
    ['1,000 lines', `GET /livez HTTP/1.1\r\n${lines(1_000)}\r\n`, 200],
    ['1,001 lines', `GET /livez HTTP/1.1\r\n${lines(1_001)}\r\n`, 431],
    ['one byte less than 16 KiB', ofBytes(connectionLimits.headersBytesMax - 1), 200],
    ['16 KiB', ofBytes(connectionLimits.headersBytesMax), 431],
  ])('%s', async (_what, text, status) => {
    connection.write(text)
    expect((await response()).status).toBe(status)
  })
})

describe('a shutdown', () => {
  it('waits for the answers to requests in flight, and not for idle connections', async () => {
    const idle = await HttpConnection.open((api.app.server.address() as AddressInfo).port)
    idle.write(post(entryText))
    await expect.poll(() => idle.responses).toHaveLength(1)
    api.queue.adds.length = 0
    api.queue.holding = true
    connection.write(post(entryText))
    await expect.poll(() => api.queue.adds).toHaveLength(1)
    const closed = api.close()
    api.queue.adds[0]?.confirm()
    expect((await response()).status).toBe(202)
    await closed
    idle.destroy()
  })
})
