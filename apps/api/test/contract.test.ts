import { limits } from '@sluice/schema'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { logsPaths } from '../src/http-contract.ts'
import { sharedTestApi } from './support/shared-api.ts'
import { RECEIVED_AT_MS } from './support/test-api.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const entry = { level: 'info', message: 'hello' } as const
const invalid = { level: 'loud', message: 'hello' } as const

const api = sharedTestApi()

describe.each(logsPaths)('POST %s', (url) => {
  it('accepts one entry, and returns its id', async () => {
    const response = await api.post(entry, { url })
    expect(response.statusCode).toBe(202)
    expect(response.headers['content-type']).toMatch(/^application\/json(;|$)/)
    const answer = response.json<Record<string, unknown>>()
    expect(Object.keys(answer)).toEqual(['id', 'status', 'timestamp'])
    expect(answer).toEqual({
      id: expect.stringMatching(UUID_V7),
      status: 'accepted',
      timestamp: new Date(RECEIVED_AT_MS).toISOString(),
    })
    expect(api.queue.rows).toMatchObject([{ ...entry, id: answer['id'], project_id: 'demo' }])
  })

  it('accepts a batch in an object', async () => {
    const response = await api.post({ logs: [entry, entry] }, { url })
    expect(response.statusCode).toBe(202)
    expect(response.json()).toEqual({ success: true, accepted: 2, rejected: 0 })
    expect(api.queue.rows).toHaveLength(2)
  })

  it('accepts a plain array', async () => {
    const response = await api.post([entry, entry, entry], { url })
    expect(response.statusCode).toBe(202)
    expect(response.json()).toEqual({ success: true, accepted: 3, rejected: 0 })
    expect(api.queue.rows).toHaveLength(3)
  })

  it('ignores a query string', async () => {
    expect((await api.post(entry, { url: `${url}?key=x&level=error` })).statusCode).toBe(202)
    expect(api.queue.rows).toMatchObject([entry])
  })
})

describe('an entry', () => {
  it('is answered with its timestamp exactly as it was sent', async () => {
    const timestamp = '2026-11-20T23:43:01,123456789+01:00'
    const response = await api.post({ ...entry, timestamp })
    expect(response.json()).toMatchObject({ timestamp })
    expect(api.queue.rows).toMatchObject([{ timestamp: '2026-11-20 22:43:01.123456' }])
  })

  it('is answered with the time of receipt when its timestamp is null', async () => {
    const response = await api.post({ ...entry, timestamp: null })
    expect(response.json()).toMatchObject({ timestamp: '2026-11-20T12:00:00.005Z' })
    expect(api.queue.rows).toMatchObject([{ timestamp: '2026-11-20 12:00:00.005' }])
  })

  it('is stored with all its fields', async () => {
    const sent = {
      level: 'error',
      message: 'm',
      environment: 'production',
      source: 'server',
      service: 'shop',
      url: 'https://example.com/',
      pathname: '/',
      stack: 'Error',
    }
    await api.post({ ...sent, metadata: { user: 7 }, trace: 'abc' })
    expect(api.queue.rows).toMatchObject([{ ...sent, metadata_text: '{"user":7,"trace":"abc"}' }])
  })

  it('is stored for the project of the API key, regardless of its fields', async () => {
    await api.post({ ...entry, project_id: 'other', projectId: 'other', id: 'mine' })
    const [row] = api.queue.rows
    expect(row).toMatchObject({
      project_id: 'demo',
      metadata_text: expect.stringContaining('"project_id":"other"'),
    })
    expect(row?.['id']).toMatch(UUID_V7)
  })

  it.each(['9007199254740993', '18446744073709551616', '1e400'])(
    'keeps the digits of %s in its metadata and its unknown fields',
    async (digits) => {
      await api.post(`{"level":"info","message":"m","n":${digits},"metadata":{"a":[${digits}]}}`)
      expect(api.queue.rows).toMatchObject([{ metadata_text: `{"a":[${digits}],"n":${digits}}` }])
    },
  )

  it('keeps __proto__ and constructor as data', async () => {
    const members = '"__proto__":{"level":"x"},"constructor":{"prototype":{"y":1}}'
    const response = await api.post(`{"level":"info","message":"m",${members}}`)
    expect(response.statusCode).toBe(202)
    expect(api.queue.rows).toMatchObject([{ metadata_text: `{${members}}` }])
    expect(({} as { y?: unknown }).y).toBeUndefined()
  })

  it('that is invalid is rejected with all reasons', async () => {
    const response = await api.post({ level: 'loud', environment: 5 })
    expect(response.statusCode).toBe(400)
    const { errors } = response.json<{ errors: { path: string; code: string; message: string }[] }>()
    expect(errors.map(({ path, code }) => `${path} ${code}`).toSorted()).toEqual([
      ' missing',
      '/environment wrong_type',
      '/level not_allowed',
    ])
    for (const error of errors) expect(Object.keys(error)).toEqual(['path', 'code', 'message'])
    expect(api.queue.rows).toEqual([])
  })
})

describe('a batch', () => {
  it('has its valid entries stored, and its invalid ones reported by index', async () => {
    const response = await api.post({ logs: [entry, invalid, entry, 5, { level: 'info' }] })
    expect(response.statusCode).toBe(202)
    const answer = response.json<{ errors: object[] }>()
    expect(answer).toMatchObject({ success: true, accepted: 2, rejected: 3 })
    expect(answer.errors).toEqual([
      { index: 1, path: '/level', code: 'not_allowed', message: expect.stringContaining('log, debug') },
      { index: 3, path: '', code: 'wrong_type', message: 'must be of type object' },
      { index: 4, path: '', code: 'missing', message: 'message is required' },
    ])
    expect(api.queue.rows).toHaveLength(2)
  })

  it.each([
    ['in an object', { logs: [] }],
    ['as a plain array', []],
  ])('that is empty is accepted: %s', async (_how, body) => {
    const response = await api.post(body)
    expect(response.statusCode).toBe(202)
    expect(response.json()).toEqual({ success: true, accepted: 0, rejected: 0 })
    expect(api.queue.adds).toEqual([])
  })

  it('is accepted even if all entries are rejected, and nothing is enqueued', async () => {
    const response = await api.post([invalid, null, 'x', [entry]])
    expect(response.statusCode).toBe(202)
    expect(response.json()).toMatchObject({ success: true, accepted: 0, rejected: 4 })
    expect(api.queue.adds).toEqual([])
  })

  it.each([1, 99, 100])('of %i entries is accepted, and each entry gets a different id', async (count) => {
    const response = await api.post(Array.from({ length: count }, () => entry))
    expect(response.json()).toEqual({ success: true, accepted: count, rejected: 0 })
    expect(new Set(api.queue.rows.map(({ id }) => id)).size).toBe(count)
  })

  it('keeps the order of its entries', async () => {
    await api.post(Array.from({ length: 100 }, (_, i) => ({ level: 'info', message: String(i) })))
    expect(api.queue.rows.map(({ message }) => message)).toEqual(
      Array.from({ length: 100 }, (_, i) => String(i)),
    )
  })

  it('may have other fields in addition to its logs', async () => {
    const response = await api.post({ logs: [entry], level: 'info', message: 'no entry', extra: 1 })
    expect(response.json()).toEqual({ success: true, accepted: 1, rejected: 0 })
    expect(api.queue.rows).toMatchObject([entry])
  })

  it('counts all entries as accepted or rejected when numbers require the exact parser', async () => {
    const text = '{"level":"info","message":"m","metadata":{"n":1e400}}'
    const response = await api.post(`[${text},{"level":"x"},${text},1e400]`)
    expect(response.json()).toMatchObject({ accepted: 2, rejected: 2 })
    expect(api.queue.rows).toHaveLength(2)
    expect(new Set(api.queue.rows.map(({ id }) => id)).size).toBe(2)
  })

  it.each([
    ['for its metadata', '"metadata":1e400'],
    ['for its metadata next to an unknown field', '"metadata":1e400,"x":1'],
    ['for its service', '"service":1e400'],
  ])('rejects an entry with a huge number %s, and accepts the next one', async (_where, member) => {
    const valid = '{"level":"info","message":"valid","metadata":{"n":1e400}}'
    const response = await api.post(`[{"level":"info","message":"bad",${member}},${valid}]`)
    expect(response.statusCode).toBe(202)
    expect(response.json()).toMatchObject({
      accepted: 1,
      rejected: 1,
      errors: [{ index: 0, code: 'wrong_type' }],
    })
    expect(api.queue.rows).toMatchObject([{ message: 'valid' }])
  })

  it('rejects an entry with half a surrogate pair, and accepts the others unchanged', async () => {
    const valid = '{"level":"info","message":"\\ud83d\\ude00"}'
    const response = await api.post(`[${valid},{"level":"info","message":"\\ud83d"},${valid}]`)
    expect(response.json()).toMatchObject({
      accepted: 2,
      rejected: 1,
      errors: [{ index: 1, path: '/message', code: 'invalid_unicode' }],
    })
    expect(api.queue.rows.map(({ message }) => message)).toEqual(['😀', '😀'])
  })

  it('rejects an entry that is nested too deeply, and accepts the next one', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    const response = await api.post(
      `[{"level":"info","message":"m","a":${deep}},{"level":"info","message":"m"}]`,
    )
    expect(response.json()).toMatchObject({ accepted: 1, rejected: 1, errors: [{ code: 'too_deep' }] })
  })
})

describe('a body of application/x-ndjson', () => {
  const headers = { 'content-type': 'application/x-ndjson' }
  const line = JSON.stringify(entry)

  it('is a batch, even if it is one line', async () => {
    const response = await api.post(line, { headers })
    expect(response.statusCode).toBe(202)
    expect(response.json()).toEqual({ success: true, accepted: 1, rejected: 0 })
    expect(api.queue.rows).toMatchObject([entry])
  })

  it('has all its lines accepted in order', async () => {
    const lines = Array.from({ length: 100 }, (_, i) => JSON.stringify({ level: 'info', message: String(i) }))
    const response = await api.post(`${lines.join('\r\n\r\n')}\r\n`, { headers })
    expect(response.json()).toEqual({ success: true, accepted: 100, rejected: 0 })
    expect(api.queue.rows.map(({ message }) => message)).toEqual(
      Array.from({ length: 100 }, (_, i) => String(i)),
    )
  })

  it('has its invalid lines reported by index without blank lines, and the others accepted', async () => {
    const lines = ['', line, '{"level":"info",', '  ', line, JSON.stringify(invalid), '[]', '', line]
    const response = await api.post(lines.join('\n'), { headers })
    expect(response.statusCode).toBe(202)
    expect(response.json()).toEqual({
      success: true,
      accepted: 3,
      rejected: 3,
      errors: [
        { index: 1, path: '', code: 'invalid_json', message: expect.stringMatching(/^is not JSON: ./) },
        { index: 3, path: '/level', code: 'not_allowed', message: expect.stringMatching(/./) },
        { index: 4, path: '', code: 'wrong_type', message: 'must be of type object' },
      ],
    })
    expect(api.queue.rows).toHaveLength(3)
  })

  it('rejects a batch within a line', async () => {
    const response = await api.post(JSON.stringify({ logs: [entry] }), { headers })
    expect(response.json()).toMatchObject({ accepted: 0, rejected: 1 })
    expect(api.queue.rows).toEqual([])
  })

  it('keeps the digits of huge numbers, and reports an invalid line only once', async () => {
    const huge = '{"level":"info","message":"m","n":12345678901234567890}'
    const response = await api.post(`${line}\nno JSON\n${huge}`, { headers })
    expect(response.json()).toMatchObject({ accepted: 2, rejected: 1, errors: [{ index: 1 }] })
    expect(response.json<{ errors: unknown[] }>().errors).toHaveLength(1)
    expect(api.queue.rows.map((row) => row['metadata_text'])).toEqual(['{}', '{"n":12345678901234567890}'])
  })

  it.each(['\n', '\r\n \n'])('of only blank lines is an empty batch: %j', async (body) => {
    expect((await api.post(body, { headers })).json()).toEqual({ success: true, accepted: 0, rejected: 0 })
  })

  it.each(['Application/X-NDJSON', 'application/x-ndjson; charset=utf-8'])(
    'may have the media type %s',
    async (type) => {
      const response = await api.post(`${line}\n${line}`, { headers: { 'content-type': type } })
      expect(response.json()).toMatchObject({ accepted: 2 })
    },
  )
})

describe('an encoded body', () => {
  const line = JSON.stringify(entry)

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('in %s is accepted as one entry, a batch or lines', async (encoding, encode) => {
    const bodies = [line, `[${line},${line}]`, `${line}\n${line}`]
    for (const [index, body] of bodies.entries()) {
      const headers = {
        'content-encoding': encoding,
        'content-type': index === 2 ? 'application/x-ndjson' : 'application/json',
      }
      expect((await api.post(encode(Buffer.from(body)), { headers })).statusCode).toBe(202)
    }
    expect(api.queue.rows).toMatchObject([entry, entry, entry, entry, entry])
  })

  it('is limited in its decoded size, like any other', async () => {
    const headers = { 'content-encoding': 'zstd' }
    const within = `[]${' '.repeat(limits.bodyBytesMax - 2)}`
    expect((await api.post(zstdCompressSync(within), { headers })).statusCode).toBe(202)
    expect((await api.post(zstdCompressSync(`${within} `), { headers })).statusCode).toBe(413)
    expect((await api.post(within)).statusCode).toBe(202)
    expect((await api.post(`${within} `)).statusCode).toBe(413)
  })
})

describe('a body', () => {
  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json; charset=utf8',
    'Application/JSON',
    'application/json; profile=x',
  ])('may have the media type %s', async (type) => {
    expect((await api.post(entry, { headers: { 'content-type': type } })).statusCode).toBe(202)
  })

  it.each(['identity', 'Identity'])('may be encoded as %s', async (encoding) => {
    expect((await api.post(entry, { headers: { 'content-encoding': encoding } })).statusCode).toBe(202)
  })

  it('may be surrounded by whitespace', async () => {
    expect((await api.post(`\r\n\t ${JSON.stringify(entry)} \n`)).statusCode).toBe(202)
  })

  it('may contain every escaped control character, including NUL', async () => {
    const message = Array.from({ length: 32 }, (_, i) => String.fromCodePoint(i)).join('')
    expect((await api.post({ level: 'info', message })).statusCode).toBe(202)
    expect(api.queue.rows).toMatchObject([{ message }])
  })

  it('may contain the text of an escaped surrogate', async () => {
    expect((await api.post({ level: 'info', message: String.raw`\ud83d` })).statusCode).toBe(202)
    expect(api.queue.rows).toMatchObject([{ message: String.raw`\ud83d` }])
  })

  it('uses the last of duplicate names', async () => {
    await api.post('{"level":"loud","level":"info","message":"a","message":"b"}')
    expect(api.queue.rows).toMatchObject([{ level: 'info', message: 'b' }])
  })
})
