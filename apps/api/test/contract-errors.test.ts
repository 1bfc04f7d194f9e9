import { ClockError } from '@sluice/runtime'
import { limits } from '@sluice/schema'
import type { InjectOptions } from 'fastify'
import { expect, it } from 'vitest'
import { logsPaths } from '../src/http-contract.ts'
import { badMethods } from './bad-inputs/requests.ts'
import { problemCode } from './support/problem.ts'
import { freshTestApi, rebuild } from './support/shared-api.ts'

const entry = { level: 'info', message: 'hello' } as const
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const unknownClock = (): never => {
  throw new ClockError('the time of Redis is not known yet')
}

const api = freshTestApi()

it.each(logsPaths)('%s rejects other methods, and reports the allowed one', async (url) => {
  for (const method of [...badMethods, 'QUERY'] as const) {
    const response = await api.app.inject({ method: method as 'GET', url })
    expect(problemCode(response)).toBe('method_not_allowed')
    expect(response.headers.allow).toBe('POST')
  }
  const head = await api.app.inject({ method: 'HEAD', url })
  expect([head.statusCode, head.headers.allow, head.body]).toEqual([405, 'POST', ''])
})

it.each([
  ['no media type', '', 'x'],
  ['another charset', 'application/json; charset=latin1', '{}'],
  ['invalid JSON', 'application/json', '{'],
  ['a body over the limit', 'application/json', 'a'.repeat(limits.bodyBytesMax + 1)],
])('another method or another path is rejected regardless of the body: %s', async (_what, type, body) => {
  const headers = { 'content-type': type }
  expect(problemCode(await api.post(body, { method: 'PUT', headers }))).toBe('method_not_allowed')
  expect(problemCode(await api.post(body, { url: '/nowhere', headers }))).toBe('not_found')
  expect(problemCode(await api.post(undefined, { method: 'OPTIONS', url: '/nowhere' }))).toBe('not_found')
})

it('authentication comes before all checks of the body', async () => {
  const headers = { authorization: 'Bearer unknown', 'content-type': 'text/plain', 'content-encoding': 'x' }
  const response = await api.post('{', { headers })
  expect(problemCode(response)).toBe('unauthorized')
  expect(response.headers['www-authenticate']).toBe('Bearer')
})

it('the response to an unsupported content encoding names the supported ones', async () => {
  const response = await api.post(entry, { headers: { 'content-encoding': 'lz4' } })
  expect(problemCode(response)).toBe('unsupported_encoding')
  expect(response.headers['accept-encoding']).toBe('gzip, deflate, br, zstd')
})

it.each([
  ['no lines', '', 'empty_body'],
  ['101 lines', '{}\n'.repeat(101), 'too_many_entries'],
  ['101 invalid lines', 'x\n'.repeat(101), 'too_many_entries'],
  ['invalid UTF-8 in one line', Buffer.from('{}\n"\xff"\n{}', 'latin1'), 'invalid_utf8'],
])('NDJSON is rejected as a whole with %s', async (_what, body, code) => {
  const headers = { 'content-type': 'application/x-ndjson' }
  expect(problemCode(await api.post(body, { headers }))).toBe(code)
  expect(api.queue.adds).toEqual([])
})

it('a fault of the server causes 500 without internal details', async () => {
  api.queue.add = () => Promise.reject(new TypeError('secret of redis at 10.1.2.3'))
  const response = await api.post(entry)
  expect(problemCode(response)).toBe('internal_error')
  expect(response.body).not.toMatch(/secret|TypeError|10\.1\.2\.3|\.ts|node_modules/)
})

it('a clock of Redis that is not known yet causes 503 with Retry-After, and nothing is enqueued', async () => {
  await rebuild(api, { wallMs: unknownClock })
  const response = await api.post(entry)
  expect(problemCode(response)).toBe('queue_unavailable')
  expect(response.headers['retry-after']).toBe('1')
  expect(api.queue.adds).toEqual([])
})

it.each<[status: number, options: InjectOptions]>([
  [202, { payload: entry }],
  [400, { payload: '{' }],
  [400, { url: '/%zz' }],
  [401, { payload: entry, headers: { authorization: '' } }],
  [404, { url: '/nowhere' }],
  [405, { method: 'GET' }],
  [413, { payload: 'a'.repeat(limits.bodyBytesMax + 1) }],
  [200, { method: 'GET', url: '/livez' }],
])(
  'X-Request-Id is the id of the caller, or generated: %i',
  async (status, { headers, payload, ...options }) => {
    const given = 'req-1:a/b+c=d@e.f_g'
    const own = await api.post(payload, { ...options, headers: { ...headers, 'x-request-id': given } })
    expect([own.statusCode, own.headers['x-request-id']]).toEqual([status, given])
    const generated = await api.post(payload, { ...options, headers: headers ?? {} })
    expect(generated.headers['x-request-id']).toMatch(UUID)
  },
)

it('X-Request-Id is replaced if it is not sane', async () => {
  const longest = 'a'.repeat(128)
  for (const id of [longest, '', ' ', 'a b', '<script>', 'a"b', 'a,b', 'é', 'a\tb', '{}', `${longest}a`]) {
    const { headers } = await api.post(entry, { headers: { 'x-request-id': id } })
    expect(headers['x-request-id']).toMatch(id === longest ? /^a{128}$/ : UUID)
  }
})

it('no response has CORS headers', async () => {
  const headers = { origin: 'https://example.com', 'access-control-request-method': 'POST' }
  for (const method of ['OPTIONS', 'POST', 'GET'] as const) {
    const response = await api.post(method === 'POST' ? entry : undefined, { method, headers })
    expect(Object.keys(response.headers).join()).not.toContain('access-control-')
  }
})

it('health needs no key, and reports why the process is not ready while it is alive', async () => {
  expect((await api.app.inject('/readyz')).json()).toEqual({ status: 'ok' })
  api.readiness = { ready: false, reasons: ['the connection to Redis is reconnecting'] }
  const response = await api.app.inject('/readyz')
  expect(problemCode(response)).toBe('not_ready')
  expect(response.json()).toMatchObject({ detail: `${api.readiness.reasons[0]}.` })
  expect((await api.app.inject('/livez')).json()).toEqual({ status: 'ok' })
})
