import { limits } from '@sluice/schema'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { logsPaths } from '../src/http-contract.ts'
import { sharedTestApi } from './support/shared-api.ts'
import { type Body, RECEIVED_AT_MS } from './support/test-api.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const entry = { level: 'info', message: 'hello' } as const
const invalid = { level: 'loud', message: 'hello' } as const
const line = JSON.stringify(entry)
const ndjson = { 'content-type': 'application/x-ndjson' }
const numbered = Array.from({ length: 100 }, (_, i) => ({ level: 'info', message: String(i) }))
const exact = '{"level":"info","message":"m","metadata":{"n":1e400}}'
const deep = `{"level":"info","message":"m","a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`

interface EntryFault {
  readonly index?: number
  readonly path: string
  readonly code: string
}

const api = sharedTestApi()

it.each(logsPaths)('POST %s accepts one entry, and returns its id, or a batch', async (url) => {
  const response = await api.post(entry, { url: `${url}?key=x&level=error` })
  expect(response.statusCode).toBe(202)
  expect(response.headers['content-type']).toMatch(/^application\/json(;|$)/)
  const { id, ...answer } = response.json<Record<string, unknown>>()
  expect(answer).toEqual({ status: 'accepted', timestamp: new Date(RECEIVED_AT_MS).toISOString() })
  expect(id).toMatch(UUID_V7)
  for (const body of [{ logs: [entry, entry] }, [entry, entry]])
    expect((await api.post(body, { url })).json()).toEqual({ success: true, accepted: 2, rejected: 0 })
  expect(api.queue.rows).toMatchObject([{ ...entry, id, project_id: 'demo' }, entry, entry, entry, entry])
})

const places = { environment: 'production', source: 'server', url: 'https://example.com/', pathname: '/' }
const all = { level: 'error', message: 'm', service: 'shop', stack: 'Error', ...places }
const hostile = '"__proto__":{"level":"x"},"constructor":{"prototype":{"y":1}}'
const controls = Array.from({ length: 32 }, (_, i) => String.fromCodePoint(i)).join('')
const at = '2026-11-20T23:43:01,123456789+01:00'

describe('an entry', () => {
  it.each([
    ['as it was sent', at, at, '2026-11-20 22:43:01.123456'],
    ['of its receipt if it is null', null, '2026-11-20T12:00:00.005Z', '2026-11-20 12:00:00.005000'],
  ])('is acknowledged with the timestamp %s', async (_what, timestamp, answered, stored) => {
    expect((await api.post({ ...entry, timestamp })).json()).toMatchObject({ timestamp: answered })
    expect(api.queue.rows).toMatchObject([{ timestamp: stored }])
  })

  it.each<[what: string, body: Body, row: object]>([
    [
      'with all its fields',
      { ...all, metadata: { user: 7 }, trace: 'abc' },
      { ...all, metadata_text: '{"user":7,"trace":"abc"}' },
    ],
    [
      'for the project of its key, and with an id of the service',
      { ...entry, project_id: 'other', id: 'mine' },
      { project_id: 'demo', metadata_text: '{"project_id":"other","id":"mine"}' },
    ],
    ...['9007199254740993', '1e400'].map((digits): [string, string, object] => [
      `with the digits of ${digits}`,
      `{"level":"info","message":"m","n":${digits},"metadata":{"a":[${digits}]}}`,
      { metadata_text: `{"a":[${digits}],"n":${digits}}` },
    ]),
    [
      'with names of JavaScript',
      `{"level":"info","message":"m",${hostile}}`,
      { metadata_text: `{${hostile}}` },
    ],
    ['within whitespace', `\r\n\t ${line} \n`, entry],
    ['with control characters', { level: 'info', message: controls }, { message: controls }],
    [
      'with an escaped escape',
      { level: 'info', message: String.raw`\ud83d` },
      { message: String.raw`\ud83d` },
    ],
    [
      'with the last of duplicate names',
      '{"level":"loud","level":"info","message":"a","message":"b"}',
      { level: 'info', message: 'b' },
    ],
    [
      'with the last of escaped duplicates',
      '{"m\\u0065ssage":"a","level":"info","message":"b"}',
      { message: 'b' },
    ],
  ])('is stored %s', async (_what, body, row) => {
    const response = await api.post(body)
    expect(response.statusCode).toBe(202)
    const { id } = response.json<{ id: string }>()
    expect(id).toMatch(UUID_V7)
    expect(api.queue.rows).toMatchObject([{ ...row, id }])
    expect(({} as { y?: unknown }).y).toBeUndefined()
  })

  it('that is invalid is rejected with all reasons', async () => {
    const response = await api.post({ level: 'loud', environment: 5 })
    expect(response.statusCode).toBe(400)
    const { errors } = response.json<{ errors: EntryFault[] }>()
    const reasons = errors.map(({ path, code }) => `${path} ${code}`)
    expect(reasons.toSorted()).toEqual([' missing', '/environment wrong_type', '/level not_allowed'])
    for (const error of errors) expect(Object.keys(error)).toEqual(['path', 'code', 'message'])
    expect(api.queue.rows).toEqual([])
  })
})

/** The messages of the accepted entries, and the index, path and code of each error. */
type BatchCase = [
  what: string,
  body: Body,
  accepted: readonly string[],
  errors: readonly string[],
  headers?: Record<string, string>,
]

const numberedMessages = numbered.map(({ message }) => message)
const numberedLines = `${numbered.map((each) => JSON.stringify(each)).join('\r\n\r\n')}\r\n`
const mixedLines = ['', line, '{"level":"info",', '  ', line, JSON.stringify(invalid), '[]', '', exact]
const mixed = [entry, invalid, entry, 5, { level: 'info' }]
const halfPair = String.raw`{"level":"info","message":"\ud83d"}`

const batches: BatchCase[] = [
  ['an empty batch in an object', { logs: [] }, [], []],
  ['an empty array', [], [], []],
  ['100 entries in order', numbered, numberedMessages, []],
  ['other fields beside its logs', { logs: [entry], level: 'info', message: 'no', x: 1 }, ['hello'], []],
  ['invalid entries', mixed, ['hello', 'hello'], ['1 /level not_allowed', '3  wrong_type', '4  missing']],
  ['only invalid entries', [null, 'x', [entry]], [], ['0  wrong_type', '1  wrong_type', '2  wrong_type']],
  ['numbers for the exact parser', `[${exact},1e400,${exact}]`, ['m', 'm'], ['1  wrong_type']],
  ...['metadata', 'service'].map((name): BatchCase => [
    `a huge number as its ${name}`,
    `[{"level":"info","message":"bad","${name}":1e400,"x":1},${exact}]`,
    ['m'],
    [`0 /${name} wrong_type`],
  ]),
  ['half a surrogate pair', `[${halfPair},${line}]`, ['hello'], ['0 /message invalid_unicode']],
  ['deep nesting', `[${deep},${line}]`, ['hello'], ['0  too_deep']],
  ['one line', line, ['hello'], [], ndjson],
  ['100 lines in order, and blank lines', numberedLines, numberedMessages, [], ndjson],
  [
    'invalid lines, which are counted without blank lines',
    mixedLines.join('\n'),
    ['hello', 'hello', 'm'],
    ['1  invalid_json', '3 /level not_allowed', '4  wrong_type'],
    ndjson,
  ],
  ['a batch in a line', JSON.stringify({ logs: [entry], level: 'info' }), [], ['0  missing'], ndjson],
  ['only blank lines', '\r\n \n', [], [], ndjson],
  [
    'lines of a type in another case',
    line,
    ['hello'],
    [],
    { 'content-type': 'Application/X-NDJSON; charset=utf-8' },
  ],
]

it.each(batches)('a batch may have %s', async (_what, body, accepted, errors, headers = {}) => {
  const response = await api.post(body, { headers })
  expect(response.statusCode).toBe(202)
  const { errors: found = [], ...counts } = response.json<{ errors?: EntryFault[] }>()
  expect(counts).toEqual({ success: true, accepted: accepted.length, rejected: errors.length })
  expect(found.map(({ index, path, code }) => `${index} ${path} ${code}`)).toEqual(errors)
  const { rows } = api.queue
  expect(rows.map(({ message }) => message)).toEqual(accepted)
  expect(new Set(rows.map(({ id }) => id)).size).toBe(accepted.length)
  expect(api.queue.adds.length === 0).toBe(accepted.length === 0)
})

it.each([
  ['gzip', gzipSync],
  ['x-gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
])('a body in %s is accepted as one entry, a batch or lines', async (encoding, encode) => {
  for (const [body, type] of [[line], [`[${line},${line}]`], [`${line}\n${line}`, ndjson]] as const) {
    const response = await api.post(encode(body), { headers: { 'content-encoding': encoding, ...type } })
    expect(response.statusCode).toBe(202)
  }
  expect(api.queue.rows).toMatchObject([entry, entry, entry, entry, entry])
})

it('a body is limited in its size, decoded or not', async () => {
  const headers = { 'content-encoding': 'zstd' }
  const within = `[]${' '.repeat(limits.bodyBytesMax - 2)}`
  expect((await api.post(zstdCompressSync(within), { headers })).statusCode).toBe(202)
  expect((await api.post(zstdCompressSync(`${within} `), { headers })).statusCode).toBe(413)
  expect((await api.post(within)).statusCode).toBe(202)
  expect((await api.post(`${within} `)).statusCode).toBe(413)
})

it.each([
  { 'content-type': 'application/json;charset=UTF-8' },
  { 'content-type': 'application/json; charset="utf-8"' },
  { 'content-type': 'application/json; charset=utf8' },
  { 'content-type': 'Application/JSON' },
  { 'content-type': 'application/json; profile=x' },
  { 'content-encoding': 'Identity' },
])('a body may have %j', async (headers) => {
  expect((await api.post(entry, { headers })).statusCode).toBe(202)
})
