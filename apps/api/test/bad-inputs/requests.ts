import type { InjectOptions } from 'fastify'
import type { ProblemCode } from '../../src/problems.ts'

/** A request with a valid body and an invalid head. Its headers are added to valid ones. */
export type BadRequest = readonly [what: string, options: Omit<InjectOptions, 'payload'>, code: ProblemCode]

export const badTypes = [
  '',
  'json',
  'text/plain',
  'application/json5',
  'application/json, text/plain',
  'application/x-www-form-urlencoded',
  'application/octet-stream',
  '*/*',
  'application/json\tx',
  'application/json; charset=latin1',
  'application/json; charset=utf-16',
  'application/json; charset="shift_jis"',
  'application/x-ndjson; charset=latin1',
  'application/ndjson',
] as const

export const badEncodings = ['lz4', 'gzip, identity', 'gzip, gzip', 'gzip;q=1', '*', 'utf-8'] as const

export const badPaths: readonly BadRequest[] = [
  ['an invalid escape', { url: '/%zz' }, 'bad_request'],
  ['an escape that is not UTF-8', { url: '/v1/%ff' }, 'bad_request'],
  ['two leading slashes', { url: '//v1/logs' }, 'not_found'],
  ['an escaped slash', { url: '/v1%2flogs' }, 'not_found'],
  ['a NUL', { url: '/v1/logs%00' }, 'not_found'],
  ['a path of 10,000 characters', { url: `/${'a'.repeat(10_000)}` }, 'not_found'],
  ['__proto__', { url: '/__proto__' }, 'not_found'],
]

export const badMethods = ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'LOCK'] as const

const badKeys = [
  'Bearer ',
  'Basic ZGVtbzpkZW1v',
  `Bearer sk_live_${'0'.repeat(24)}`,
  // With a wrong checksum.
  `Bearer slk_${'0'.repeat(49)}`,
]

const withHeader = (name: string, values: readonly string[], code: ProblemCode): BadRequest[] =>
  values.map((value) => [`${name}: ${value}`, { headers: { [name]: value } }, code])

export const badRequests: readonly BadRequest[] = [
  ...withHeader('content-encoding', ['gzip', 'x-gzip', 'deflate', 'br', 'zstd'], 'invalid_encoding'),
  ...withHeader('content-encoding', badEncodings, 'unsupported_encoding'),
  ...withHeader('content-type', badTypes, 'unsupported_media_type'),
  ...badPaths,
  ...withHeader('authorization', badKeys, 'unauthorized'),
  ['no key', { headers: { authorization: undefined } }, 'unauthorized'],
]
