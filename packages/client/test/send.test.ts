import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, expect, test, vi } from 'vitest'
import type { Compression } from '../src/index.ts'
import { describeNetworkError, encodeBody, wasNeverSent } from '../src/send.ts'

const entriesOf = (characters: number) => {
  const json = `{"level":"info","message":"${'é'.repeat(characters)}"}`
  return Array.from({ length: 2 }, () => ({ json, bytes: 0, tag: undefined }))
}
const decoders = {
  zstd: zstdDecompressSync,
  gzip: gunzipSync,
  none: (bytes: Uint8Array) => Buffer.from(bytes),
}

afterEach(() => void vi.unstubAllGlobals())

test.each<[string, number, Compression, keyof typeof decoders, object?]>([
  ['zstd where the runtime has it', 2_000, 'auto', 'zstd'],
  ['gzip if it is chosen', 2_000, 'gzip', 'gzip'],
  ['gzip in an older Node, or without the modules of Node', 2_000, 'auto', 'gzip', {}],
  ['nothing if it fits into a packet', 10, 'auto', 'none'],
  ['nothing if compression is switched off', 2_000, 'none', 'none'],
])('a body is compressed with %s', async (_name, characters, compression, expected, process) => {
  if (process !== undefined) vi.stubGlobal('process', process)
  const entries = entriesOf(characters)
  const { bytes, encoding = 'none' } = await encodeBody(entries, compression)
  expect(encoding).toBe(expected)
  const body = decoders[encoding](bytes).toString()
  expect(body).toBe(`{"logs":[${entries.map(({ json }) => json).join(',')}]}`)
})

const coded = (code: string, syscall?: string): Error => Object.assign(new Error(code), { code, syscall })
const failed = (cause: Error): Error => new TypeError('fetch failed', { cause })
const allOf = (...errors: Error[]): Error => new AggregateError(errors)
const circle = new Error('circle')
circle.cause = circle
const circles = new AggregateError([], 'circles')
circles.errors.push(circles)
const { proxy: revoked, revoke } = Proxy.revocable({}, {})
revoke()
const UNREADABLE = 'an error that cannot be read'
const inDeno = new Error(
  'error sending request for url (http://a/): client error (Connect): tcp connect error',
)

/** What `fetch` threw, whether the request was certainly not sent, and the description for people. */
test.each<[string, unknown, boolean, string]>([
  ['refused in Node', failed(coded('ECONNREFUSED')), true, 'ECONNREFUSED'],
  ['refused in Bun', coded('ECONNREFUSED'), true, 'ECONNREFUSED'],
  ['refused in Deno', failed(inDeno), true, inDeno.message],
  ['all addresses', failed(allOf(coded('ECONNREFUSED'), coded('ENETUNREACH'))), true, 'ECONNREFUSED'],
  ['no connection in time', failed(coded('ETIMEDOUT', 'connect')), true, 'ETIMEDOUT'],
  ['an expired certificate', failed(coded('CERT_HAS_EXPIRED')), true, 'CERT_HAS_EXPIRED'],
  ['a connection that fell silent', failed(coded('ETIMEDOUT', 'read')), false, 'ETIMEDOUT'],
  ['a reset', failed(coded('ECONNRESET', 'read')), false, 'ECONNRESET'],
  ['one of several addresses', allOf(coded('ECONNREFUSED'), coded('ETIMEDOUT')), false, 'ECONNREFUSED'],
  ['no address', new AggregateError([]), false, 'AggregateError'],
  ['a browser, which gives no reason', new TypeError('Failed to fetch'), false, 'Failed to fetch'],
  ['no message', new RangeError(''), false, 'RangeError'],
  ['a string', 'string', false, 'string'],
  ['a circle of causes', circle, false, 'circle'],
  ['a circle of errors', circles, false, 'circles'],
  ['an object without a prototype', Object.create(null), false, UNREADABLE],
  ['a proxy that was revoked', revoked, false, UNREADABLE],
  ['undefined', undefined, false, 'undefined'],
])('an error of `fetch` is understood: %s', (_name, error, isNeverSent, description) => {
  expect(wasNeverSent(error)).toBe(isNeverSent)
  expect(describeNetworkError(error)).toBe(description)
})
