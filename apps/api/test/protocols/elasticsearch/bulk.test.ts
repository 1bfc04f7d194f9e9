import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildTestApi, type TestApi } from '../../support/test-api.ts'

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

const ndjson = (...lines: readonly (object | string)[]): string =>
  lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')

const bulk = (
  body: string | Buffer,
  url = '/elasticsearch/_bulk',
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> =>
  api.post(body, { url, headers: { 'content-type': 'application/x-ndjson', ...headers } })

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const get = (url: string, authorization = `Bearer ${api.key}`): Promise<LightMyRequestResponse> =>
  api.app.inject({ method: 'GET', url, headers: { authorization } })

const metadataOf = (row: Record<string, string> | undefined): unknown =>
  JSON.parse(row?.['metadata_text'] ?? '{}')

describe('a bulk request', () => {
  it('stores its documents, and answers with an item for each', async () => {
    const answer = await bulk(
      ndjson(
        { create: { _index: 'filebeat', _id: 'a' } },
        {
          '@timestamp': '2026-11-20T10:00:00.123456Z',
          message: 'one',
          log: { level: 'warning', file: { path: '/var/log/x' } },
          service: { name: 'shop', type: 'x' },
          host: { name: 'h' },
        },
        { index: {} },
        { message: 'two', level: 'FATAL' },
      ),
    )
    expect(answer.statusCode).toBe(200)
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-elastic-product': 'Elasticsearch',
    })
    expect(answer.body).toBe(
      '{"took":0,"errors":false,"items":[' +
        '{"create":{"_index":"filebeat","_id":"a","status":201,"result":"created"}},' +
        '{"index":{"_index":"sluice","_id":null,"status":201,"result":"created"}}]}',
    )
    const [one, two] = api.queue.rows
    expect(one).toMatchObject({
      timestamp: '2026-11-20T10:00:00.123456Z',
      level: 'warn',
      message: 'one',
      service: 'shop',
    })
    expect(metadataOf(one)).toEqual({
      log: { file: { path: '/var/log/x' } },
      service: { type: 'x' },
      host: { name: 'h' },
      _index: 'filebeat',
      _id: 'a',
    })
    expect(two).toMatchObject({ level: 'error', message: 'two', service: '' })
    expect(metadataOf(two)).toEqual({ originalLevel: 'FATAL' })
  })

  it('may have an index in its path, blank lines, CRLF, and no newline at its end', async () => {
    const answer = await bulk(
      '\r\n\n{"index":{}}\r\n{"message":"a"}\n\n\n{"index":{"_index":"own"}}\n{"message":"b"}',
      '/elasticsearch/logs/_bulk',
    )
    expect(answer.json()).toMatchObject({ errors: false })
    expect(api.queue.rows.map((row) => [row['message'], metadataOf(row)])).toEqual([
      ['a', { _index: 'logs' }],
      ['b', { _index: 'own' }],
    ])
  })

  it('may be a PUT, and may have the media type of any version', async () => {
    const answer = await api.post(ndjson({ index: {} }, { message: 'm' }), {
      method: 'PUT',
      url: '/elasticsearch/_bulk/',
      headers: { 'content-type': 'application/vnd.elasticsearch+x-ndjson; compatible-with=9' },
    })
    expect(answer.statusCode).toBe(200)
    expect(api.queue.rows.length).toBe(1)
    expect(api.counts.answers).toContainEqual([['/elasticsearch/_bulk/', 'PUT', '200'], 1])
  })

  it('stores the valid documents, and reports the others one by one', async () => {
    const answer = await bulk(
      ndjson(
        { index: {} },
        { message: 'first' },
        { index: { _id: '2' } },
        '{"message":',
        { create: {} },
        '[1]',
        { update: { _id: 'u' } },
        { doc: { message: 'x' } },
        { delete: { _id: 'd' } },
        { index: {} },
        { message: 'm'.repeat(limits.messageCharactersMax + 1) },
        { index: {} },
        `{"message":"deep","a":${'['.repeat(40)}${']'.repeat(40)}}`,
        { index: {} },
        { message: 'last' },
      ),
    )
    expect(answer.statusCode).toBe(200)
    const { errors, items } = answer.json<{
      errors: boolean
      items: Record<string, { status: number; error?: { type: string; reason: string } }>[]
    }>()
    expect(errors).toBe(true)
    expect(
      items.map((item) => Object.entries(item).map(([action, { status }]) => `${action} ${status}`)[0]),
    ).toEqual([
      'index 201',
      'index 400',
      'create 400',
      'update 400',
      'delete 400',
      'index 400',
      'index 400',
      'index 201',
    ])
    expect(items[1]?.['index']?.error).toEqual({
      type: 'document_parsing_exception',
      reason: 'The document is not JSON. The text ends too early at line 1, column 12: expected a value.',
    })
    expect(items[3]?.['update']?.error?.type).toBe('action_request_validation_exception')
    expect(items[5]?.['index']?.error?.reason).toMatch(/^\/message must/)
    expect(api.queue.rows.map(({ message }) => message)).toEqual(['first', 'last'])
  })

  it('reports a document that is not UTF-8, and stores its neighbours', async () => {
    const body = Buffer.concat([
      Buffer.from(ndjson({ index: {} }, { message: 'a' }, { index: {} })),
      Buffer.from([0x22, 0xff, 0x22, 0x0a]),
      Buffer.from(ndjson({ index: {} }, { message: 'b' })),
    ])
    const answer = await bulk(body)
    expect(
      answer.json<{ items: { index: { status: number } }[] }>().items.map(({ index }) => index.status),
    ).toEqual([201, 400, 201])
    expect(api.queue.rows.length).toBe(2)
  })

  it.each([
    ['7', 'Expected one of'],
    ['{', 'The text ends too early'],
    ['{"store":{}}', 'Expected one of'],
    ['{"index":{},"create":{}}', 'Expected one of'],
    ['{"index":7}', 'Expected one of'],
    [`{"index":{"_id":"${'x'.repeat(10_000)}"}}`, 'Expected an object'],
    ['{"index":{}}', 'The document after the action is missing'],
  ])('is rejected as a whole for the action %s', async (action, reason) => {
    const answer = await bulk(ndjson({ index: {} }, { message: 'a' }, action))
    expect(answer.statusCode).toBe(400)
    expect(answer.json<{ error: { reason: string } }>().error.reason).toContain(reason)
    expect(api.queue.rows).toEqual([])
  })

  it('with a document of many names reports it, before the names are copied', async () => {
    const names = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`n${i}`, i]))
    const answer = await bulk(ndjson({ index: {} }, names))
    expect(answer.body).toContain('The document must have at most 256 names')
  })

  it.each([
    ['', 'request body is required'],
    ['\n\r\n', 'no requests added'],
  ])('is rejected without an action: %j', async (body, reason) => {
    const answer = await bulk(body)
    expect([answer.statusCode, answer.json<{ error: { reason: string } }>().error.reason]).toEqual([
      400,
      reason,
    ])
  })

  it('with too many documents is rejected with 413, after which Filebeat divides its batch', async () => {
    const answer = await bulk('{"index":{}}\n{}\n'.repeat(limits.recordsPerRequestMax + 1))
    expect(answer.statusCode).toBe(413)
    expect(api.queue.rows).toEqual([])
  })

  it('keeps the digits of large numbers and hostile names', async () => {
    await bulk(
      ndjson({ index: {} }, String.raw`{"message":"m","n":12345678901234567890,"__proto__":{"a":1},"\n":2}`),
    )
    expect(api.queue.rows[0]?.['metadata_text']).toBe(
      String.raw`{"n":12345678901234567890,"__proto__":{"a":1},"\n":2}`,
    )
  })
})

describe('filter_path', () => {
  it.each([
    ['errors,items.*.error', '{"errors":true,"items":[{"index":{"error":E}}]}'],
    [
      'errors,items.*.error,items.*.status',
      '{"errors":true,"items":[{"index":{"status":201}},{"index":{"status":400,"error":E}}]}',
    ],
    ['took', '{"took":0}'],
    [
      'items.*._index,items.*.error.type',
      '{"items":[{"index":{"_index":"sluice"}},{"index":{"_index":"sluice","error":E}}]}',
    ],
    [
      '-took',
      '{"took":0,"errors":true,"items":[{"index":{"_index":"sluice","_id":null,"status":201,"result":"created"}},' +
        '{"index":{"_index":"sluice","_id":null,"status":400,"error":E}}]}',
    ],
  ])('%s', async (filter, expected) => {
    const answer = await bulk(
      '{"index":{}}\n{"message":"a"}\n{"index":{}}\n7\n',
      `/elasticsearch/_bulk?filter_path=${filter}`,
    )
    const error = '{"type":"document_parsing_exception","reason":"The document must be an object"}'
    expect(answer.body).toBe(expected.replace('E', error))
  })
})

describe('a key', () => {
  it.each<[string, (key: string) => string]>([
    ['ApiKey with an id', (key) => `ApiKey ${base64(`some-id:${key}`)}`],
    ['ApiKey with Base64 of the key', (key) => `apikey ${base64(key)}`],
    ['ApiKey with the key itself', (key) => `ApiKey ${key}`],
    ['Basic', (key) => `Basic ${base64(`elastic:${key}`)}`],
    ['Basic with colons in the name', (key) => `Basic ${base64(`a:b:${key}`)}`],
    ['Bearer', (key) => `Bearer ${key}`],
  ])('is accepted as %s', async (_name, authorization) => {
    const answer = await bulk('{"index":{}}\n{}\n', undefined, { authorization: authorization(api.key) })
    expect(answer.statusCode).toBe(200)
  })

  it.each(['ApiKey x', 'Basic', 'Basic Og==', 'ApiKey slk_', 'Splunk x', ''])(
    'is not %j',
    async (authorization) => {
      const answer = await bulk('{"index":{}}\n{}\n', undefined, { authorization })
      expect(answer.statusCode).toBe(401)
      expect(answer.json()).toMatchObject({ status: 401, error: { type: 'security_exception' } })
    },
  )
})

describe('what clients ask before they send', () => {
  it('is answered', async () => {
    for (const path of ['/elasticsearch', '/elasticsearch/']) {
      const answer = await get(path)
      expect(answer.json()).toMatchObject({ version: { number: '9.99.0' }, tagline: 'You Know, for Search' })
      expect(answer.headers['x-elastic-product']).toBe('Elasticsearch')
    }
    expect((await get('/elasticsearch/_license')).json()).toMatchObject({ license: { status: 'active' } })
    expect((await get('/elasticsearch/_cluster/health')).json()).toMatchObject({ status: 'green' })
    expect((await get('/elasticsearch/_cat/health?h=status')).body).toBe('green\n')
    expect(api.counts.answers).toContainEqual([['/elasticsearch', 'GET', '200'], 1])
  })

  it('needs a key', async () => {
    const answer = await get('/elasticsearch/', 'ApiKey none')
    expect([answer.statusCode, answer.json<{ status: number }>().status]).toEqual([401, 401])
  })

  it('may be a HEAD request', async () => {
    const answer = await api.app.inject({
      method: 'HEAD',
      url: '/elasticsearch/',
      headers: { authorization: `Bearer ${api.key}` },
    })
    expect([answer.statusCode, answer.body]).toEqual([200, ''])
  })
})
