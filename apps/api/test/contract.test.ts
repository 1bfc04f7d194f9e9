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

const api = sharedTestApi()

describe.each(logsPaths)('POST %s', (url) => {
  it('accepts one entry, and returns its id', async () => {
    const response = await api.post(entry, { url: `${url}?key=x&level=error` })
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

  it.each([
    ['an object', { logs: [entry, entry] }],
    ['a plain array', [entry, entry]],
  ])('accepts a batch in %s', async (_what, body) => {
    const response = await api.post(body, { url })
    expect(response.statusCode).toBe(202)
    expect(response.json()).toEqual({ success: true, accepted: 2, rejected: 0 })
    expect(api.queue.rows).toMatchObject([entry, entry])
  })
})

describe('an entry', () => {
  it.each([
    [
      'as it was sent',
      '2026-11-20T23:43:01,123456789+01:00',
      '2026-11-20T23:43:01,123456789+01:00',
      '2026-11-20 22:43:01.123456',
    ],
    ['of its receipt if it is null', null, '2026-11-20T12:00:00.005Z', '2026-11-20 12:00:00.005'],
  ])('is acknowledged with the timestamp %s', async (_what, timestamp, answered, stored) => {
    expect((await api.post({ ...entry, timestamp })).json()).toMatchObject({ timestamp: answered })
    expect(api.queue.rows).toMatchObject([{ timestamp: stored }])
  })

  const all = {
    level: 'error',
    message: 'm',
    environment: 'production',
    source: 'server',
    service: 'shop',
    url: 'https://example.com/',
    pathname: '/',
    stack: 'Error',
  }
  const hostile = '"__proto__":{"level":"x"},"constructor":{"prototype":{"y":1}}'
  const controls = Array.from({ length: 32 }, (_, i) => String.fromCodePoint(i)).join('')

  it.each<[what: string, body: Body, row: object]>([
    [
      'with all its fields',
      { ...all, metadata: { user: 7 }, trace: 'abc' },
      { ...all, metadata_text: '{"user":7,"trace":"abc"}' },
    ],
    [
      'for the project of its key, and with an id of the service',
      { ...entry, project_id: 'other', id: 'mine' },
      {
        project_id: 'demo',
        id: expect.stringMatching(UUID_V7),
        metadata_text: '{"project_id":"other","id":"mine"}',
      },
    ],
    ...['9007199254740993', '18446744073709551616', '1e400'].map((digits): [string, string, object] => [
      `with the digits of ${digits}`,
      `{"level":"info","message":"m","n":${digits},"metadata":{"a":[${digits}]}}`,
      { metadata_text: `{"a":[${digits}],"n":${digits}}` },
    ]),
    [
      'with __proto__ and constructor as data',
      `{"level":"info","message":"m",${hostile}}`,
      { metadata_text: `{${hostile}}` },
    ],
    ['within whitespace', `\r\n\t ${line} \n`, entry],
    ['with control characters', { level: 'info', message: controls }, { message: controls }],
    [
      'with an escaped surrogate as plain characters',
      { level: 'info', message: String.raw`\ud83d` },
      { message: String.raw`\ud83d` },
    ],
    [
      'with the last of duplicate names',
      '{"level":"loud","level":"info","message":"a","message":"b"}',
      { level: 'info', message: 'b' },
    ],
  ])('is stored %s', async (_what, body, row) => {
    expect((await api.post(body)).statusCode).toBe(202)
    expect(api.queue.rows).toMatchObject([row])
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

/** The messages of the accepted entries, and the errors of the others. */
type BatchCase = [
  what: string,
  body: Body,
  accepted: readonly string[],
  errors: readonly object[],
  headers?: Record<string, string>,
]

const batches: BatchCase[] = [
  ['an empty batch in an object', { logs: [] }, [], []],
  ['an empty array', [], [], []],
  ['100 entries in order', numbered, numbered.map(({ message }) => message), []],
  ['other fields beside its logs', { logs: [entry], level: 'info', message: 'no', x: 1 }, ['hello'], []],
  [
    'invalid entries',
    { logs: [entry, invalid, entry, 5, { level: 'info' }] },
    ['hello', 'hello'],
    [
      { index: 1, path: '/level', code: 'not_allowed', message: expect.stringContaining('log, debug') },
      { index: 3, path: '', code: 'wrong_type', message: 'must be of type object' },
      { index: 4, path: '', code: 'missing', message: 'message is required' },
    ],
  ],
  ['only invalid entries', [null, 'x', [entry]], [], [{ index: 0 }, { index: 1 }, { index: 2 }]],
  [
    'numbers for the exact parser',
    `[${exact},{"level":"x","message":"m"},${exact},1e400]`,
    ['m', 'm'],
    [{ index: 1 }, { index: 3 }],
  ],
  ...['"metadata":1e400', '"metadata":1e400,"x":1', '"service":1e400'].map((member): BatchCase => [
    `the huge number ${member}`,
    `[{"level":"info","message":"bad",${member}},${exact}]`,
    ['m'],
    [{ index: 0, code: 'wrong_type' }],
  ]),
  [
    'half a surrogate pair',
    String.raw`[{"level":"info","message":"\ud83d\ude00"},{"level":"info","message":"\ud83d"},{"level":"info","message":"\ud83d\ude00"}]`,
    ['😀', '😀'],
    [{ index: 1, path: '/message', code: 'invalid_unicode' }],
  ],
  ['deep nesting', `[${deep},${line}]`, ['hello'], [{ index: 0, code: 'too_deep' }]],
  ['one line', line, ['hello'], [], ndjson],
  [
    '100 lines in order, and blank lines',
    `${numbered.map((each) => JSON.stringify(each)).join('\r\n\r\n')}\r\n`,
    numbered.map(({ message }) => message),
    [],
    ndjson,
  ],
  [
    'invalid lines, which are counted without blank lines',
    ['', line, '{"level":"info",', '  ', line, JSON.stringify(invalid), '[]', '', exact].join('\n'),
    ['hello', 'hello', 'm'],
    [
      { index: 1, path: '', code: 'invalid_json', message: expect.stringMatching(/^is not JSON: ./) },
      { index: 3, path: '/level', code: 'not_allowed', message: expect.stringMatching(/./) },
      { index: 4, path: '', code: 'wrong_type', message: 'must be of type object' },
    ],
    ndjson,
  ],
  ['a batch in a line', JSON.stringify({ logs: [entry], level: 'info' }), [], [{ index: 0 }], ndjson],
  ['no line', '\n', [], [], ndjson],
  ['only blank lines', '\r\n \n', [], [], ndjson],
  ...['Application/X-NDJSON', 'application/x-ndjson; charset=utf-8'].map((type): BatchCase => [
    `lines of the media type ${type}`,
    `${line}\n${line}`,
    ['hello', 'hello'],
    [],
    { 'content-type': type },
  ]),
]

it.each(batches)('a batch may have %s', async (_what, body, accepted, errors, headers = {}) => {
  const response = await api.post(body, { headers })
  expect(response.statusCode).toBe(202)
  const { errors: found = [], ...counts } = response.json<{ errors?: object[] }>()
  expect(counts).toEqual({ success: true, accepted: accepted.length, rejected: errors.length })
  expect(found).toMatchObject(errors)
  expect(found).toHaveLength(errors.length)
  const { rows } = api.queue
  expect(rows.map(({ message }) => message)).toEqual(accepted)
  expect(new Set(rows.map(({ id }) => id)).size).toBe(accepted.length)
  expect(api.queue.adds.length === 0).toBe(accepted.length === 0)
})

describe('an encoded body', () => {
  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('in %s is accepted as one entry, a batch or lines', async (encoding, encode) => {
    const headers = { 'content-encoding': encoding }
    for (const [body, type] of [
      [line, {}],
      [`[${line},${line}]`, {}],
      [`${line}\n${line}`, ndjson],
    ] as const)
      expect((await api.post(encode(body), { headers: { ...headers, ...type } })).statusCode).toBe(202)
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

it.each([
  { 'content-type': 'application/json; charset=utf-8' },
  { 'content-type': 'application/json;charset=UTF-8' },
  { 'content-type': 'application/json; charset="utf-8"' },
  { 'content-type': 'application/json; charset=utf8' },
  { 'content-type': 'Application/JSON' },
  { 'content-type': 'application/json; profile=x' },
  { 'content-encoding': 'identity' },
  { 'content-encoding': 'Identity' },
])('a body may have %j', async (headers) => {
  expect((await api.post(entry, { headers })).statusCode).toBe(202)
})
