import type { InjectOptions } from 'fastify'
import type { ProblemCode } from '../../src/problems.ts'

/** A request with a valid body and an invalid head. Its headers are added to valid ones. */
export type BadRequest = readonly [what: string, options: Omit<InjectOptions, 'payload'>, code: ProblemCode]

export const badTypes = [
  '',
  'json',
  'text/plain',
  'text/json',
  'text/html',
  'application/jsonp',
  'application/json5',
  'application/ld+json',
  'application/json-patch+json',
  'application/json, text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/octet-stream',
  'application/xml',
  'application/*',
  '*/*',
  'application',
  'application/json\tx',
  'application/json; charset=latin1',
  'application/json; charset=utf-16',
  'application/json; charset=utf-8-sig',
  'application/json; CHARSET=ISO-8859-1',
  'application/json; charset="shift_jis"',
  'application/x-ndjson; charset=latin1',
  'application/ndjson',
  'application/jsonl',
] as const

export const badEncodings = ['lz4', 'gzip, identity, x', 'gzip, gzip', 'utf-8', '*', 'snappy'] as const

export const badPaths: readonly BadRequest[] = [
  ['an invalid escape', { url: '/%zz' }, 'bad_request'],
  ['a truncated escape', { url: '/v1/logs%2' }, 'bad_request'],
  ['an escape that is not UTF-8', { url: '/v1/%ff' }, 'bad_request'],
  ['two leading slashes', { url: '//v1/logs' }, 'not_found'],
  ['two slashes in the middle', { url: '/v1//logs' }, 'not_found'],
  ['a trailing slash', { url: '/v1/logs/' }, 'not_found'],
  ['an escaped slash', { url: '/v1%2flogs' }, 'not_found'],
  ['a NUL', { url: '/v1/logs%00' }, 'not_found'],
  ['upper case', { url: '/V1/Logs' }, 'not_found'],
  ['another version', { url: '/v2/logs' }, 'not_found'],
  ['no version', { url: '/api/logs' }, 'not_found'],
  ['the version twice', { url: '/v1/v1/logs' }, 'not_found'],
  ['a parameter after a semicolon', { url: '/v1/logs;v=1' }, 'not_found'],
  ['a file extension', { url: '/v1/logs.json' }, 'not_found'],
  ['a path of 10,000 characters', { url: `/${'a'.repeat(10_000)}` }, 'not_found'],
  ['__proto__', { url: '/__proto__' }, 'not_found'],
  ['a path traversal', { url: '/../../etc/passwd' }, 'not_found'],
]

export const badMethods = ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'LOCK'] as const

const badKeys: readonly BadRequest[] = [
  undefined,
  'Bearer ',
  'Basic ZGVtbzpkZW1v',
  'Bearer undefined',
  'Bearer <API_KEY>',
  `Bearer sk_live_${'0'.repeat(24)}`,
  // With a wrong checksum.
  `Bearer slk_${'0'.repeat(49)}`,
].map((authorization) => [`the key "${authorization}"`, { headers: { authorization } }, 'unauthorized'])

/** The body is not encoded, although these headers claim it. */
const falseEncodings = ['gzip', 'x-gzip', 'deflate', 'br', 'zstd'] as const

export const badRequests: readonly BadRequest[] = [
  ...falseEncodings.map((encoding): BadRequest => [
    `the encoding "${encoding}" for a body that is not encoded`,
    { headers: { 'content-encoding': encoding } },
    'invalid_encoding',
  ]),
  ...badTypes.map((type): BadRequest => [
    `the media type "${type}"`,
    { headers: { 'content-type': type } },
    'unsupported_media_type',
  ]),
  ...badEncodings.map((encoding): BadRequest => [
    `the encoding "${encoding}"`,
    { headers: { 'content-encoding': encoding } },
    'unsupported_encoding',
  ]),
  ...badPaths,
  ...badKeys,
]
