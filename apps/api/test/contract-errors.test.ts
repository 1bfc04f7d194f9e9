import { QueueUnavailableError } from '@sluice/queue'
import { ClockError } from '@sluice/runtime'
import { limits } from '@sluice/schema'
import type { InjectOptions } from 'fastify'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { logsPaths } from '../src/http-contract.ts'
import { problemCode } from './support/problem.ts'
import { buildTestApi, type TestApi } from './support/test-api.ts'

const entry = { level: 'info', message: 'hello' } as const
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** An empty batch with the given length. */
const ofBytes = (bytes: number): string => {
  const [head, tail] = ['{"logs":[]', '}']
  return head + ' '.repeat(bytes - head.length - tail.length) + tail
}

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

describe.each(logsPaths)('%s', (url) => {
  it.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'])(
    'rejects %s, and reports the allowed method',
    async (method) => {
      const response = await api.post(undefined, { method: method, url })
      expect(problemCode(response)).toBe('method_not_allowed')
      expect(response.headers.allow).toBe('POST')
    },
  )

  it('answers HEAD without a body', async () => {
    const response = await api.post(undefined, { method: 'HEAD', url })
    expect(response.statusCode).toBe(405)
    expect(response.headers.allow).toBe('POST')
    expect(response.body).toBe('')
  })

  it.each([
    ['text', 'text/plain', 'x'],
    ['no media type', '', 'x'],
    ['another charset', 'application/json; charset=latin1', '{}'],
    ['invalid JSON', 'application/json', '{'],
    ['a body over the limit', 'application/json', 'a'.repeat(limits.bodyBytesMax + 1)],
  ])('rejects PUT regardless of the body: %s', async (_what, type, body) => {
    const headers = { 'content-type': type }
    expect(problemCode(await api.post(body, { method: 'PUT', url, headers }))).toBe('method_not_allowed')
  })

  it('rejects a method without authentication', async () => {
    expect(problemCode(await api.app.inject({ method: 'GET', url }))).toBe('method_not_allowed')
  })
})

describe('any other path', () => {
  it.each(['/', '/v1', '/v1/logs/', '/v1/logs/1', '//v1/logs', '/V1/logs', '/v2/logs', '/logs', '/api/logs'])(
    'is not found: %s',
    async (url) => {
      for (const method of ['GET', 'POST', 'OPTIONS'] as const) {
        expect(problemCode(await api.app.inject({ method, url }))).toBe('not_found')
      }
    },
  )

  it.each([
    ['another charset', 'application/json; charset=latin1', '{}'],
    ['a body over the limit', 'application/json', 'a'.repeat(limits.bodyBytesMax + 1)],
  ])('is not found regardless of the body: %s', async (_what, type, body) => {
    expect(problemCode(await api.post(body, { url: '/nowhere', headers: { 'content-type': type } }))).toBe(
      'not_found',
    )
  })
})

describe('authentication', () => {
  it('comes before all checks of the body', async () => {
    const headers = { authorization: 'Bearer unknown', 'content-type': 'text/plain', 'content-encoding': 'x' }
    const response = await api.post('{', { headers })
    expect(problemCode(response)).toBe('unauthorized')
    expect(response.headers['www-authenticate']).toBe('Bearer')
  })

  it('without the scope gets 403', async () => {
    const { key } = api.registry.addKey({ scopes: ['read'] })
    expect(problemCode(await api.post(entry, { headers: { authorization: `Bearer ${key}` } }))).toBe(
      'forbidden',
    )
  })

  it('for a deleted or disabled project gets 404', async () => {
    api.registry.addProject({ enabled: false })
    expect(problemCode(await api.post(entry))).toBe('project_not_found')
    expect(api.queue.adds).toEqual([])
  })

  it('that fails because Redis is unavailable gets 503 with Retry-After', async () => {
    api.registry.beforeAnswer = () => Promise.reject(new Error('down'))
    const response = await api.post(entry)
    expect(problemCode(response)).toBe('queue_unavailable')
    expect(response.headers['retry-after']).toBe('1')
  })
})

describe('a content encoding', () => {
  it.each(['lz4', 'gzip, zstd'])('that is not supported gets the supported ones: %s', async (encoding) => {
    const response = await api.post(entry, { headers: { 'content-encoding': encoding } })
    expect(problemCode(response)).toBe('unsupported_encoding')
    expect(response.headers['accept-encoding']).toBe('gzip, deflate, br, zstd')
  })

  it('of an empty body does not change that it is empty', async () => {
    const headers = { 'content-encoding': 'gzip' }
    expect(problemCode(await api.post('', { headers }))).toBe('empty_body')
    expect(problemCode(await api.post(gzipSync(''), { headers }))).toBe('empty_body')
  })
})

describe('NDJSON lines', () => {
  const headers = { 'content-type': 'application/x-ndjson' }

  it.each([
    ['no lines', '', 'empty_body'],
    ['101 lines', '{}\n'.repeat(101), 'too_many_entries'],
    ['101 invalid lines', 'x\n'.repeat(101), 'too_many_entries'],
    ['invalid UTF-8 in one line', Buffer.from('{}\n"\xff"\n{}', 'latin1'), 'invalid_utf8'],
  ])('are rejected together: %s', async (_what, body, code) => {
    expect(problemCode(await api.post(body, { headers }))).toBe(code)
    expect(api.queue.adds).toEqual([])
  })
})

describe('the size limit of the body', () => {
  it('allows a body of exactly that size', async () => {
    const response = await api.post(ofBytes(limits.bodyBytesMax))
    expect(response.statusCode).toBe(202)
  })

  it('is exceeded by one more byte', async () => {
    expect(problemCode(await api.post(ofBytes(limits.bodyBytesMax + 1)))).toBe('body_too_large')
  })
})

describe('the queue', () => {
  it('that does not answer in time causes 503 with Retry-After', async () => {
    api.queue.holding = true
    const pending = api.post(entry)
    await expect.poll(() => api.queue.adds).toHaveLength(1)
    api.queue.adds[0]?.fail(new QueueUnavailableError('no answer'))
    const response = await pending
    expect(problemCode(response)).toBe('queue_unavailable')
    expect(response.headers['retry-after']).toMatch(/^[1-9]\d*$/)
  })

  it('that fails unexpectedly causes 500 without internal details', async () => {
    api.queue.holding = true
    const pending = api.post(entry)
    await expect.poll(() => api.queue.adds).toHaveLength(1)
    api.queue.adds[0]?.fail(new TypeError('secret of redis at 10.1.2.3'))
    const response = await pending
    expect(problemCode(response)).toBe('internal_error')
    expect(response.body).not.toMatch(/secret|TypeError|10\.1\.2\.3|\.ts|node_modules/)
  })

  it('that is full causes 503 before anything is enqueued, and accepts entries again afterwards', async () => {
    api.queue.holding = true
    const message = 'a'.repeat(65_000)
    const body = JSON.stringify(Array.from({ length: 75 }, () => ({ level: 'info', message })))
    const requests = Math.ceil(api.bodies.status.bytesMax / body.length) + 1
    const pending = Array.from({ length: requests }, () => api.post(body))
    const rejected = await Promise.race(pending)
    expect(problemCode(rejected)).toBe('overloaded')
    expect(rejected.headers['retry-after']).toMatch(/^[1-9]\d*$/)
    const enqueued = api.queue.adds.length
    api.queue.holding = false
    for (const { confirm } of api.queue.adds) confirm()
    const statuses = (await Promise.all(pending)).map(({ statusCode }) => statusCode)
    expect(enqueued).toBeLessThan(requests)
    expect(statuses.filter((status) => status === 202).length * 75).toBe(api.queue.lines.length)
    await api.signals.monitor.poll()
    expect((await api.post(entry)).statusCode).toBe(202)
  })
})

describe('the clock of Redis', () => {
  it('that is not known yet causes 503 with Retry-After, and nothing is enqueued', async () => {
    const other = buildTestApi({
      wallMs: () => {
        throw new ClockError('the time of Redis is not known yet')
      },
    })
    const response = await other.post(entry)
    expect(problemCode(response)).toBe('queue_unavailable')
    expect(response.headers['retry-after']).toBe('1')
    expect(other.queue.adds).toEqual([])
    await other.close()
  })
})

describe('X-Request-Id', () => {
  const kinds: readonly (readonly [kind: string, status: number, options: InjectOptions])[] = [
    ['202', 202, { payload: entry }],
    ['400', 400, { payload: '{' }],
    ['401', 401, { payload: entry, headers: { authorization: '' } }],
    ['404', 404, { url: '/nowhere' }],
    ['an invalid URL', 400, { url: '/%zz' }],
    ['405', 405, { method: 'GET' }],
    ['413', 413, { payload: 'a'.repeat(limits.bodyBytesMax + 1) }],
    ['415', 415, { payload: 'x', headers: { 'content-type': 'text/plain' } }],
    ['livez', 200, { method: 'GET', url: '/livez' }],
  ]

  it.each(kinds)('is the id of the caller: %s', async (_kind, status, { headers, payload, ...options }) => {
    const given = { ...headers, 'x-request-id': 'req-1:a/b+c=d@e.f_g' }
    const response = await api.post(payload, { ...options, headers: given })
    expect(response.statusCode).toBe(status)
    expect(response.headers['x-request-id']).toBe('req-1:a/b+c=d@e.f_g')
  })

  it.each(kinds)(
    'is generated if the caller sends none: %s',
    async (_kind, status, { payload, ...options }) => {
      const response = await api.post(payload, options)
      expect(response.statusCode).toBe(status)
      expect(response.headers['x-request-id']).toMatch(UUID)
    },
  )

  it.each(['', ' ', 'a b', '<script>', 'a"b', "a'b", 'a,b', 'é', 'a\tb', '{}', 'a'.repeat(129)])(
    'is replaced if it is %j',
    async (given) => {
      const response = await api.post(entry, { headers: { 'x-request-id': given } })
      expect(response.headers['x-request-id']).toMatch(UUID)
    },
  )

  it('may have 128 characters', async () => {
    const given = 'a'.repeat(128)
    expect((await api.post(entry, { headers: { 'x-request-id': given } })).headers['x-request-id']).toBe(
      given,
    )
  })
})

describe('CORS', () => {
  it('headers are on no answer', async () => {
    const headers = {
      origin: 'https://example.com',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization',
    }
    for (const method of ['OPTIONS', 'POST', 'GET'] as const) {
      const response = await api.post(method === 'POST' ? entry : undefined, { method, headers })
      expect(Object.keys(response.headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
    }
  })
})

describe('health', () => {
  it('needs no key', async () => {
    expect((await api.app.inject('/livez')).json()).toEqual({ status: 'ok' })
    expect((await api.app.inject('/readyz')).json()).toEqual({ status: 'ok' })
  })

  it('reports why it is not ready, and stays alive', async () => {
    api.readiness = { ready: false, reasons: ['the connection to Redis is reconnecting'] }
    const response = await api.app.inject('/readyz')
    expect(response.statusCode).toBe(503)
    expect(response.json()).toMatchObject({ code: 'not_ready', detail: `${api.readiness.reasons[0]}.` })
    expect((await api.app.inject('/livez')).statusCode).toBe(200)
  })
})
