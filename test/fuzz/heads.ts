import { happens, integer, pick, type Random } from '@sluice/harness'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { badEncodings, badMethods, badPaths, badTypes } from '../../apps/api/test/bad-inputs/requests.ts'
import type { Draft, Ending } from './fuzz-request.ts'

type HeadMutation = (draft: Draft, random: Random) => void

/** The mutations of a head, each with its probability. */
export const headMutations: readonly (readonly [probability: number, HeadMutation])[] = [
  [0.05, changeContentType],
  [0.06, encode],
  [0.06, changeAuthorization],
  [0.06, addIdempotencyKey],
  [0.02, expectContinue],
  [0.03, changeMethod],
  [0.04, changeTarget],
  [0.02, changeVersion],
  [0.03, changeRequestId],
  [0.06, addHeader],
]

const contentTypes = [
  ...badTypes,
  'application/json; charset=utf-8',
  'APPLICATION/JSON',
  'application/x-ndjson',
  'application/x-protobuf',
  'application/json;;;',
  `application/json; x=${'y'.repeat(2e3)}`,
  'ÿ/þ',
]

function changeContentType(draft: Draft, random: Random): void {
  draft.contentType = happens(random, 0.1) ? undefined : pick(random, contentTypes)
  draft.forgetContent()
  // An unsupported charset is rejected by the body reader. Fastify then closes the connection.
  draft.mutated(`content type ${draft.contentType?.slice(0, 40)}`, 'closes')
}

const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
const encoders: Readonly<Record<string, (body: Buffer) => Buffer>> = {
  gzip: (body) => gzipSync(body, { level: 1 }),
  deflate: (body) => deflateSync(body, { level: 1 }),
  br: (body) => brotliCompressSync(body, fast),
  zstd: (body) => zstdCompressSync(body),
}
const encodings = [
  ...Object.keys(encoders),
  ...badEncodings,
  'identity',
  'x-gzip',
  '',
  'gzip;q=1',
  'br, zstd',
]

/** 8 MiB of blanks in each encoding. No decoder may decode them to the end. */
const bombs = Object.values(encoders).map((compress) => compress(Buffer.alloc(8 * 1_024 * 1_024, ' ')))

function encode(draft: Draft, random: Random): void {
  const encoding = pick(random, encodings)
  const encoder = happens(random, 0.1) ? pick(random, Object.values(encoders)) : encoders[encoding]
  draft.headers.push(`Content-Encoding: ${encoding}`)
  if (happens(random, 0.02)) draft.body = pick(random, bombs)
  else if (encoder !== undefined) draft.body = encoder(draft.body)
  if (happens(random, 0.2)) draft.body = draft.body.subarray(0, integer(random, 0, draft.body.length))
  if (happens(random, 0.1)) draft.body = Buffer.concat([draft.body, draft.body])
  draft.forgetContent()
  // A server that cannot decode a body need not read the rest of it.
  draft.mutated(`content encoding ${encoding}`, 'closes')
}

const badAuthorizations = ['', 'Bearer', 'Bearer ', 'Basic ZGVtbzpkZW1v', 'Bearer slk_x y', '\xff']

function changeAuthorization(draft: Draft, random: Random): void {
  const bad = pick(random, badAuthorizations)
  // 429: after several unknown keys, the client must wait.
  draft.statuses = [401, 403, 404, 429]
  const kinds: readonly Draft['authorization'][] = [
    () => undefined,
    ({ orphan }) => `Bearer ${orphan}`,
    ({ revoked }) => `Bearer ${revoked}`,
    ({ reader }) => `Bearer ${reader}`,
    (_keys, valid) => `Bearer ${valid.slice(0, -1)}!`,
    () => bad,
    (_keys, valid) => `bEARER   ${valid}`,
  ]
  const kind = integer(random, 0, kinds.length - 1)
  draft.authorization = kinds[kind] ?? draft.authorization
  // The last one is valid.
  if (kind === kinds.length - 1) draft.statuses = undefined
  draft.mutated(`authorization ${kind}`)
}

const badIdempotencyKeys = ['', 'a b', 'k'.repeat(256), 'é', '\xff', 'a, b']

/** One of a few keys that many requests share, some of them with the same body. */
function addIdempotencyKey(draft: Draft, random: Random): void {
  const group = Math.floor(draft.number / 100)
  const isBad = happens(random, 0.2)
  const key = isBad ? pick(random, badIdempotencyKeys) : `fuzz-${group}-${integer(random, 0, 2)}`
  draft.headers.push(`Idempotency-Key: ${key}`)
  if (happens(random, 0.1)) draft.headers.push(`idempotency-key: ${key}2`)
  if (happens(random, 0.6)) {
    draft.body = Buffer.from(`[{"level":"info","message":"group ${group}"},{"level":"info"}]`)
    draft.entries = draft.contentType === 'application/json' ? 2 : undefined
    draft.records = undefined
  }
  draft.mutated(`idempotency key ${key.slice(0, 20)}`)
}

function expectContinue(draft: Draft, random: Random): void {
  const value = pick(random, ['100-continue', '100-Continue', '200-ok', '', '100-continue, x'])
  draft.headers.push(`Expect: ${value}`)
  // If the request is rejected without a 100 Continue, the server cannot know what follows: Node closes the connection.
  draft.mutated(`expect ${value}`, 'closes')
}

/** Values after which another request may follow, and values after which it is ambiguous where the request ends. */
interface Choices {
  readonly keeps: readonly string[]
  readonly torn: readonly string[]
}

function pickChoice({ keeps, torn }: Choices, random: Random): readonly [string, Ending] {
  const value = pick(random, [...keeps, ...torn])
  return [value, keeps.includes(value) ? 'keeps' : 'torn']
}

const methods: Choices = {
  keeps: [...badMethods, 'HEAD'],
  torn: ['CONNECT', 'FOO', 'post', 'P\0ST', '', 'POST POST', 'PRI', '\x16\x03\x01'],
}

function changeMethod(draft: Draft, random: Random): void {
  const [method, ending] = pickChoice(methods, random)
  draft.method = method
  draft.mutated(`method ${method}`, ending)
}

const targets: Choices = {
  keeps: [
    ...badPaths.flatMap(([, { url }]) => (typeof url === 'string' ? [url] : [])),
    '/api/v1/logs',
    '/v1/logs?a=b',
    '/livez',
    '*',
    `/v1/logs?${'a=b&'.repeat(1_000)}`,
  ],
  torn: ['', 'v1/logs', '/v1/ logs', '/v1/logs\0', '/\xff', 'http://localhost/v1/logs', '/v1/logs#x'],
}

function changeTarget(draft: Draft, random: Random): void {
  const [target, ending] = pickChoice(targets, random)
  draft.target = target
  draft.mutated(`target ${target.slice(0, 40)}`, ending)
}

const badVersions = ['HTTP/1.2', 'HTTP/2.0', 'HTTP/0.9', 'http/1.1', 'HTTP/1.', '', 'HTTP/1.1 ', 'ICE/1.0']

function changeVersion(draft: Draft, random: Random): void {
  const isOld = happens(random, 0.1)
  draft.version = isOld ? 'HTTP/1.0' : pick(random, badVersions)
  draft.mutated(`version ${draft.version}`, isOld ? 'closes' : 'torn')
}

function changeRequestId(draft: Draft, random: Random): void {
  const id = pick(random, ['', 'a b', '<script>', 'i'.repeat(129), '\xe9', "a'b", '{}', '%0d%0a'])
  draft.headers.push(`X-Request-Id: ${id}`)
  draft.requestId = undefined
  draft.mutated(`request id ${id.slice(0, 20)}`)
}

const numbered = (count: number): string =>
  Array.from({ length: count }, (_, i) => `X${i}: ${i}`).join('\r\n')
const oddHeaders: Choices = {
  keeps: [
    'X-Empty:',
    'x-latin: \xe9\xff',
    '__proto__: x',
    'Host: other',
    'Keep-Alive: timeout=0',
    'Accept-Encoding: *;q=0',
    'Origin: https://example.com',
    'Authorization: Bearer x',
    'Content-Type: text/html',
    `X-Large: ${'x'.repeat(5_000)}`,
    numbered(200),
  ],
  torn: [
    'X-Bad\0: x',
    'X-Bad : x',
    'no colon',
    'X-Bad: a\0b',
    'X-Bad: a\nb',
    ' folded: x',
    'X-Fold: a\r\n b',
    'Connection: Upgrade\r\nUpgrade: h2c',
    'Connection: close, keep-alive',
    `X-Huge: ${'x'.repeat(20_000)}`,
    numbered(3_000),
  ],
}

function addHeader(draft: Draft, random: Random): void {
  const [header, ending] = pickChoice(oddHeaders, random)
  // In front of the valid headers: Node uses the first of two.
  if (happens(random, 0.5)) draft.headers.unshift(header)
  else draft.headers.push(header)
  if (/^(authorization|content-type)/i.test(header)) draft.forgetContent()
  draft.mutated(`header ${JSON.stringify(header.slice(0, 40))}`, ending)
}
