import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { encodeBody, describeNetworkError, wasNeverSent } from '../src/send.ts'

const entriesOf = (characters: number) => {
  const json = `{"level":"info","message":"${'é'.repeat(characters)}"}`
  return [
    { json, bytes: 0, tag: undefined },
    { json, bytes: 0, tag: undefined },
  ]
}
const large = entriesOf(2_000)
const body = `{"logs":[${large.map(({ json }) => json).join(',')}]}`

afterEach(() => void vi.unstubAllGlobals())

describe('a body is compressed', () => {
  test('with zstd where the runtime has it', async () => {
    const { bytes, encoding } = await encodeBody(large, 'auto')
    expect(encoding).toBe('zstd')
    expect(zstdDecompressSync(bytes).toString()).toBe(body)
  })

  test('with gzip if it is chosen', async () => {
    const { bytes, encoding } = await encodeBody(large, 'gzip')
    expect(encoding).toBe('gzip')
    expect(gunzipSync(bytes).toString()).toBe(body)
  })

  test.each([
    ['an older Node', { getBuiltinModule: undefined }],
    ['a runtime without the modules of Node', undefined],
  ])('with gzip in %s', async (_name, process) => {
    vi.stubGlobal('process', process)
    const { bytes, encoding } = await encodeBody(large, 'auto')
    expect(encoding).toBe('gzip')
    expect(gunzipSync(bytes).toString()).toBe(body)
  })
})

describe('a body is not compressed', () => {
  test('if it fits into a packet', async () => {
    expect((await encodeBody(entriesOf(10), 'auto')).encoding).toBeUndefined()
  })

  test('if compression is switched off', async () => {
    const { bytes, encoding } = await encodeBody(large, 'none')
    expect(encoding).toBeUndefined()
    expect(new TextDecoder().decode(bytes)).toBe(body)
  })
})

const coded = (message: string, code: string): Error => Object.assign(new Error(message), { code })

describe('a request was certainly not sent', () => {
  test.each<[string, Error]>([
    [
      'in Node',
      new TypeError('fetch failed', { cause: coded('connect ECONNREFUSED 127.0.0.1:1', 'ECONNREFUSED') }),
    ],
    [
      'to any address of a host',
      new TypeError('fetch failed', {
        cause: new AggregateError([coded('a', 'ECONNREFUSED'), coded('b', 'ENETUNREACH')]),
      }),
    ],
    [
      'before the system gave the connection up',
      new TypeError('fetch failed', {
        cause: Object.assign(coded('connect ETIMEDOUT', 'ETIMEDOUT'), { syscall: 'connect' }),
      }),
    ],
    [
      'to a server whose certificate has expired',
      new TypeError('fetch failed', { cause: coded('certificate has expired', 'CERT_HAS_EXPIRED') }),
    ],
    ['in Bun', coded('Unable to connect.', 'ECONNREFUSED')],
    [
      'in Deno',
      new TypeError('fetch failed', {
        cause: new Error(
          'error sending request for url (http://a/): client error (Connect): tcp connect error',
        ),
      }),
    ],
  ])('%s', (_name, error) => {
    expect(wasNeverSent(error)).toBe(true)
  })
})

describe('a request may have been sent', () => {
  test.each<[string, unknown]>([
    [
      'over a connection that fell silent',
      new TypeError('fetch failed', {
        cause: Object.assign(coded('read ETIMEDOUT', 'ETIMEDOUT'), { syscall: 'read' }),
      }),
    ],
    ['after a reset', new TypeError('fetch failed', { cause: coded('read ECONNRESET', 'ECONNRESET') })],
    ['in a browser, which gives no reason', new TypeError('Failed to fetch')],
    [
      'to one of several addresses',
      new AggregateError([coded('a', 'ECONNREFUSED'), coded('b', 'ETIMEDOUT')]),
    ],
    ['without an address', new AggregateError([])],
    ['after something that is no error', 'no'],
    ['after nothing', undefined],
  ])('%s', (_name, error) => {
    expect(wasNeverSent(error)).toBe(false)
  })
})

describe('an error of `fetch` is described by its innermost cause, and survived if it cannot be read', () => {
  const circle = new Error('circle')
  circle.cause = circle
  const circles = new AggregateError([], 'circles')
  circles.errors.push(circles)
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const all = new AggregateError([new Error('first'), new Error('second')])
  test.each<[string, unknown, string]>([
    [
      'a cause',
      new TypeError('fetch failed', { cause: new Error('connect ETIMEDOUT') }),
      'connect ETIMEDOUT',
    ],
    ['several causes', new TypeError('fetch failed', { cause: all }), 'first'],
    ['no cause', new TypeError('Failed to fetch'), 'Failed to fetch'],
    ['no message', new RangeError(''), 'RangeError'],
    ['a string', 'string', 'string'],
    ['a circle of causes', circle, 'circle'],
    ['a circle of errors', circles, 'circles'],
    ['an object without a prototype', Object.create(null), 'an error that cannot be read'],
    ['a proxy that was revoked', proxy, 'an error that cannot be read'],
    ['undefined', undefined, 'undefined'],
    ['a symbol', Symbol('a'), 'Symbol(a)'],
  ])('%s', (_name, error, description) => {
    expect(wasNeverSent(error)).toBe(false)
    expect(describeNetworkError(error)).toBe(description)
  })
})
