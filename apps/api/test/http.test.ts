import { limits } from '@sluice/schema'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ProblemCode, problems } from '../src/problems.ts'
import { chunk, entry, post as postText, postHead } from './support/http-text.ts'
import { RawConnection, type RawResponse } from './support/raw-http.ts'
import { buildTestApi, type TestApi } from './support/test-api.ts'

let api: TestApi
let connection: RawConnection

beforeEach(async () => {
  api = buildTestApi()
  await api.app.listen({ host: '127.0.0.1', port: 0 })
  connection = await RawConnection.open((api.app.server.address() as AddressInfo).port)
})

afterEach(async () => {
  connection.destroy()
  await api.close()
})

const head = (lines: readonly string[], key = api.key): string => postHead(key, lines)
const post = (body: string, lines?: readonly string[]): string => postText(api.key, body, lines)

/** The response of that place, once it is there. */
async function response(index = 0): Promise<RawResponse> {
  await expect.poll(() => connection.responses.length, { timeout: 3_000 }).toBeGreaterThan(index)
  const found = connection.responses[index]
  if (found === undefined) throw new Error('no response')
  return found
}

/** The code of the problem document in that place, which must agree with its status and headers. */
async function problemCode(index = 0): Promise<ProblemCode> {
  const { status, headers, body } = await response(index)
  expect(headers['content-type']).toMatch(/^application\/problem\+json/)
  const document = JSON.parse(body) as { code: ProblemCode }
  expect(document).toMatchObject({ status, requestId: headers['x-request-id'] })
  expect(problems[document.code].status).toBe(status)
  return document.code
}

describe('a request', () => {
  it('is taken in chunks, parted anywhere', async () => {
    connection.write(head(['Transfer-Encoding: chunked']))
    for (const character of '{"level":"info","message":"grüße 😀"}') connection.write(chunk(character))
    connection.write('0\r\n\r\n')
    expect((await response()).status).toBe(202)
    expect(api.queue.rows).toMatchObject([{ message: 'grüße 😀' }])
  })

  it('is taken byte by byte', async () => {
    for (const byte of post(entry)) {
      connection.write(byte)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect((await response()).status).toBe(202)
  })

  it('is answered in its turn when many are sent at once', async () => {
    const texts = Array.from({ length: 20 }, (_, i) => (i % 3 === 2 ? '{' : entry))
    connection.write(texts.map((text, i) => post(text, [`X-Request-Id: r${i}`])).join(''))
    await response(19)
    const answers = connection.responses.map(({ status, headers }) => `${headers['x-request-id']} ${status}`)
    expect(answers).toEqual(texts.map((text, i) => `r${i} ${text === entry ? 202 : 400}`))
    expect(api.queue.rows).toHaveLength(14)
  })

  it('does not take what follows a body for part of it', async () => {
    connection.write(head([`Content-Length: ${entry.length}`]) + entry + post(entry))
    expect((await response(1)).status).toBe(202)
    expect(api.queue.rows).toHaveLength(2)
  })

  it('of HTTP/1.0 is answered, and the connection closed', async () => {
    connection.write(post(entry).replace('HTTP/1.1', 'HTTP/1.0'))
    expect((await response()).status).toBe(202)
    await expect.poll(() => connection.received).toMatch(/connection: close/i)
  })

  it('that asks to continue is told to, and taken', async () => {
    connection.write(head(['Expect: 100-continue', `Content-Length: ${entry.length}`]))
    await expect.poll(() => connection.received).toContain('HTTP/1.1 100 Continue')
    expect(connection.responses).toEqual([])
    connection.write(entry)
    expect((await response()).status).toBe(202)
  })

  it.each([['k'], ['other'], ['']])('with two idempotency keys is refused: %s', async (second) => {
    connection.write(post(entry, ['Idempotency-Key: k', `Idempotency-Key: ${second}`]))
    expect(await problemCode()).toBe('invalid_idempotency_key')
    expect(api.queue.adds).toEqual([])
  })

  it('with two Authorization headers is decided by the first alone', async () => {
    connection.write(head(['Authorization: Bearer nobody', `Content-Length: ${entry.length}`]) + entry)
    expect((await response()).status).toBe(202)
    const lines = [`Authorization: Bearer ${api.key}`, `Content-Length: ${entry.length}`]
    connection.write(head(lines, 'nobody') + entry)
    expect(await problemCode(1)).toBe('unauthorized')
    expect(api.queue.rows).toHaveLength(1)
  })
})

describe('a request with a bad key is answered before its body is there', () => {
  it('when the body has no end', async () => {
    connection.write(head(['Transfer-Encoding: chunked'], 'nobody') + chunk('['))
    expect(await problemCode()).toBe('unauthorized')
    expect((await response()).headers['www-authenticate']).toBe('Bearer')
  })

  it('when none of it was sent', async () => {
    connection.write(head([`Content-Length: ${entry.length}`], 'nobody'))
    expect(await problemCode()).toBe('unauthorized')
  })

  it('when it says that it is larger than may be', async () => {
    connection.write(head(['Content-Length: 99999999999'], 'nobody'))
    expect(await problemCode()).toBe('unauthorized')
  })

  it('when it asks to continue, and is not told to', async () => {
    connection.write(head(['Expect: 100-continue', 'Content-Length: 1000'], 'nobody'))
    expect(await problemCode()).toBe('unauthorized')
    expect(connection.received).not.toContain('100 Continue')
  })

  it('and is answered once, whatever follows', async () => {
    connection.write(head(['Transfer-Encoding: chunked'], 'nobody'))
    expect(await problemCode()).toBe('unauthorized')
    connection.write('no chunk at all\r\n')
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(connection.responses).toHaveLength(1)
  })

  it('and the next request on the connection is answered too, when the body was read away', async () => {
    connection.write(head([`Content-Length: ${entry.length}`], 'nobody') + entry + post(entry))
    expect(await problemCode()).toBe('unauthorized')
    expect((await response(1)).status).toBe(202)
  })
})

describe('a body that is too large', () => {
  it('is refused by its length, before any of it was sent', async () => {
    connection.write(head([`Content-Length: ${limits.bodyBytesMax + 1}`]))
    expect(await problemCode()).toBe('body_too_large')
  })

  it('is refused in chunks once it passes the limit, and not read to its end', async () => {
    connection.write(head(['Transfer-Encoding: chunked']))
    const part = chunk('a'.repeat(512 * 1024))
    for (let i = 0; i <= 10; i += 1) connection.write(part)
    expect(await problemCode()).toBe('body_too_large')
    expect(api.queue.adds).toEqual([])
  })
})

describe('what is no HTTP is answered as a problem all the same', () => {
  const bad: readonly (readonly [what: string, text: () => string, code: ProblemCode])[] = [
    ['garbage', () => 'garbage\r\n\r\n', 'bad_request'],
    ['TLS', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'bad_request'],
    ['HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'bad_request'],
    ['an unknown method', () => 'BREW /v1/logs HTTP/1.1\r\nHost: x\r\n\r\n', 'bad_request'],
    ['an unknown version', () => 'POST /v1/logs HTTP/9.9\r\nHost: x\r\n\r\n', 'bad_request'],
    ['a header without a colon', () => 'POST /v1/logs HTTP/1.1\r\nHost x\r\n\r\n', 'bad_request'],
    ['a NUL in a header', () => post(entry, ['X-Note: a\0b']), 'bad_request'],
    ['a folded header', () => post(entry, ['X-Note: a', ' b']), 'bad_request'],
    ['a blank before a colon', () => post(entry, ['X-Note : a']), 'bad_request'],
    ['two lengths', () => head(['Content-Length: 5', 'Content-Length: 6']) + entry, 'bad_request'],
    ['a negative length', () => head(['Content-Length: -1']), 'bad_request'],
    ['a length in hexadecimal', () => head(['Content-Length: 0x1e']) + entry, 'bad_request'],
    ['a length of words', () => head(['Content-Length: many']) + entry, 'bad_request'],
    [
      'a length and chunks',
      () => `${head(['Content-Length: 5', 'Transfer-Encoding: chunked'])}0\r\n\r\n`,
      'bad_request',
    ],
    [
      'chunks that are not last',
      () => head(['Transfer-Encoding: chunked, gzip']) + chunk(entry),
      'bad_request',
    ],
    ['a chunk of no size', () => `${head(['Transfer-Encoding: chunked'])}zz\r\n`, 'bad_request'],
    ['headers of 20,000 bytes', () => post(entry, [`X-Note: ${'a'.repeat(20_000)}`]), 'headers_too_large'],
    ['a path of 20,000 bytes', () => `GET /${'a'.repeat(20_000)} HTTP/1.1\r\n`, 'headers_too_large'],
  ]

  it.each(bad)('%s', async (_what, text, code) => {
    connection.write(Buffer.from(text(), 'latin1'))
    expect(await problemCode()).toBe(code)
    expect(api.queue.adds).toEqual([])
  })

  it.each([
    ['no host', () => post(entry).replace('Host: localhost\r\n', '')],
    ['an unknown expectation', () => post(entry, ['Expect: a-miracle'])],
  ])('%s, if it is not taken', async (_what, text) => {
    connection.write(text())
    const { status, headers } = await response()
    expect(headers['x-request-id']).toMatch(/./)
    expect(status === 202 || headers['content-type']?.startsWith('application/problem+json')).toBe(true)
  })

  it('also after an earlier request that is answered', async () => {
    connection.write(post(entry))
    expect((await response()).status).toBe(202)
    connection.write('no HTTP\r\n\r\n')
    expect(await problemCode(1)).toBe('bad_request')
  })

  it('a body that is shorter than its length', async () => {
    connection.write(head([`Content-Length: ${entry.length + 1}`]) + entry)
    connection.end()
    expect(await problemCode()).toBe('bad_request')
    expect(api.queue.adds).toEqual([])
  })

  it('and a client that goes away in the middle leaves nothing behind', async () => {
    connection.write(head([`Content-Length: ${entry.length + 1}`]) + entry)
    await new Promise((resolve) => setTimeout(resolve, 20))
    connection.destroy()
    const again = await RawConnection.open((api.app.server.address() as AddressInfo).port)
    again.write(post(entry))
    await expect.poll(() => again.responses.map(({ status }) => status)).toEqual([202])
    again.destroy()
    expect(api.queue.rows).toHaveLength(1)
  })
})

describe('closing', () => {
  it('lets a request under way have its answer', async () => {
    api.queue.holding = true
    connection.write(post(entry))
    await expect.poll(() => api.queue.adds).toHaveLength(1)
    const closed = api.close()
    api.queue.adds[0]?.confirm()
    expect((await response()).status).toBe(202)
    await closed
  })

  it('does not wait for idle connections', async () => {
    connection.write(post(entry))
    await response()
    const startedMs = performance.now()
    await api.close()
    expect(performance.now() - startedMs).toBeLessThan(1_000)
  })
})
