import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it } from 'vitest'
import { faultOfIndexName } from '../../../src/protocols/elasticsearch/bulk-reader.ts'
import { sharedTestApi } from '../../support/shared-api.ts'

const api = sharedTestApi()

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

interface ItemAnswer {
  readonly _index: string
  readonly _id: string | null
  readonly status: number
  readonly error?: { readonly type: string; readonly reason: string }
}

/** The items of an answer, with their actions. */
async function itemsOf(body: string | Buffer, url?: string): Promise<(ItemAnswer & { action: string })[]> {
  const { items } = (await bulk(body, url)).json<{ items: Record<string, ItemAnswer>[] }>()
  return items.flatMap((one) => Object.entries(one).map(([action, item]) => Object.assign(item, { action })))
}

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
  })

  it('stores the valid documents, and reports the others one by one', async () => {
    const items = await itemsOf(
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
        Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`n${i}`, i])),
        { index: {} },
        { message: 'last' },
      ),
    )
    expect(items.map(({ action, status }) => `${action} ${status}`)).toEqual([
      'index 201',
      'index 400',
      'create 400',
      'update 400',
      'delete 400',
      'index 400',
      'index 400',
      'index 400',
      'index 201',
    ])
    expect(items[1]?.error).toEqual({
      type: 'document_parsing_exception',
      reason: 'The document is not JSON. The text ends too early at line 1, column 12: expected a value.',
    })
    expect(items[5]?.error?.reason).toMatch(/^\/message must/)
    expect(items[7]?.error?.reason).toBe('The document must have at most 256 names')
    expect(api.queue.rows.map(({ message }) => message)).toEqual(['first', 'last'])
  })

  it('reports a document that is not UTF-8, and stores its neighbours', async () => {
    const body = Buffer.concat([
      Buffer.from(ndjson({ index: {} }, { message: 'a' }, { index: {} })),
      Buffer.from([0x22, 0xff, 0x22, 0x0a]),
      Buffer.from(ndjson({ index: {} }, { message: 'b' })),
    ])
    expect((await itemsOf(body)).map(({ status }) => status)).toEqual([201, 400, 201])
    expect(api.queue.rows.length).toBe(2)
  })

  it.each([
    ['7', 'Expected one of'],
    ['{', 'The text ends too early'],
    ['{"store":{}}', 'Expected one of'],
    ['{"index":{},"create":{}}', 'Expected one of'],
    ['{"index":7}', 'Expected one of'],
    ['{"index":{"_id":{}}}', 'line [3]. Expected a simple value for field [_id]'],
    ['{"index":{"_index":[]}}', 'Expected a simple value for field [_index]'],
    [`{"index":{"_id":"${'x'.repeat(10_000)}"}}`, 'Expected an object'],
    ['{"index":{}}', 'The document after the action is missing'],
  ])('is rejected as a whole for the action %s', async (action, reason) => {
    const answer = await bulk(ndjson({ index: {} }, { message: 'a' }, action))
    expect(answer.statusCode).toBe(400)
    expect(answer.json<{ error: { reason: string } }>().error.reason).toContain(reason)
    expect(api.queue.rows).toEqual([])
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

describe('an action', () => {
  it.each([
    ['7', '7'],
    ['-1.5', '-1.5'],
    ['12345678901234567890', '12345678901234567890'],
    ['1e400', '1e400'],
    ['true', 'true'],
    ['"a"', 'a'],
  ])('with the id %s keeps it as text', async (id, text) => {
    const [item] = await itemsOf(`{"index":{"_id":${id}}}\n{"message":"m"}\n`)
    expect(item).toMatchObject({ _index: 'sluice', _id: text, status: 201 })
    expect(api.queue.rows.map(metadataOf)).toEqual([{ _id: text }])
  })

  it('may have null for index and id', async () => {
    const action = '{"create":{"_index":null,"_id":null}}\n{"message":"m"}\n'
    expect(await itemsOf(action)).toMatchObject([{ _index: 'sluice', _id: null, status: 201 }])
    expect(await itemsOf(action, '/elasticsearch/logs/_bulk')).toMatchObject([
      { _index: 'logs', status: 201 },
    ])
    expect(api.queue.rows.map(metadataOf)).toEqual([{}, { _index: 'logs' }])
  })

  it('with the name of an index that Elasticsearch rejects is an item with an error', async () => {
    const items = await itemsOf(
      '{"index":{"_index":"Logs","_id":"1"}}\n{"message":"a"}\n{"index":{"_index":"logs"}}\n{"message":"b"}\n',
    )
    expect(items).toEqual([
      {
        action: 'index',
        _index: 'Logs',
        _id: '1',
        status: 400,
        error: {
          type: 'invalid_index_name_exception',
          reason: 'Invalid index name [Logs], must be lowercase',
        },
      },
      { action: 'index', _index: 'logs', _id: null, status: 201, result: 'created' },
    ])
    expect(api.queue.rows.map(({ message }) => message)).toEqual(['b'])
  })

  it('with a long name has its beginning in the item, with the fault in the reason', async () => {
    const [item] = await itemsOf(`{"index":{"_index":"${'x'.repeat(7_000)}"}}\n{}\n`)
    expect(item).toMatchObject({ _index: `${'x'.repeat(40)}…` })
    expect(item?.error?.reason).toBe(
      `Invalid index name [${'x'.repeat(40)}…], index name is too long, (7000 > 255)`,
    )
  })

  it('that is not supported has that reason, whatever its index is', async () => {
    const items = await itemsOf('{"update":{"_index":"A"}}\n{"doc":{}}\n{"delete":{"_index":"A"}}\n')
    const error = {
      type: 'action_request_validation_exception',
      reason: 'The action must be index or create',
    }
    expect(items).toMatchObject([
      { action: 'update', _index: 'A', status: 400, error },
      { action: 'delete', _index: 'A', status: 400, error },
    ])
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
  it('is answered, to a valid key', async () => {
    for (const path of ['/elasticsearch', '/elasticsearch/']) {
      const answer = await get(path)
      expect(answer.json()).toMatchObject({ version: { number: '9.99.0' }, tagline: 'You Know, for Search' })
      expect(answer.headers['x-elastic-product']).toBe('Elasticsearch')
    }
    expect((await get('/elasticsearch/_license')).json()).toMatchObject({ license: { status: 'active' } })
    expect((await get('/elasticsearch/_cluster/health')).json()).toMatchObject({ status: 'green' })
    expect((await get('/elasticsearch/_cat/health?h=status')).body).toBe('green\n')
    const answer = await get('/elasticsearch/', 'ApiKey none')
    expect([answer.statusCode, answer.json<{ status: number }>().status]).toEqual([401, 401])
  })
})

describe('the name of an index', () => {
  it.each(['.ds-logs-generic-default-2026.11.23-000001', 'a', '...', 'größe', 'x'.repeat(255)])(
    'may be %s',
    (name) => {
      expect(faultOfIndexName(name)).toBeUndefined()
    },
  )

  it.each([
    ['', 'must not be empty'],
    ['GRÖSSE', 'must be lowercase'],
    ['_all', "must not start with '_', '-', or '+'"],
    ['..', "must not be '.' or '..'"],
    ['a#b', "must not contain '#'"],
    ['cluster:a', "must not contain ':'"],
    ['a\u{7f}', 'must not contain control characters'],
    ['é'.repeat(128), 'index name is too long, (256 > 255)'],
    ...Array.from(String.raw`\/*?"<>| ,`, (character) => [
      `a${character}`,
      expect.stringContaining('must not contain the following characters') as string,
    ]),
  ])('%j %s', (name, fault) => {
    expect(faultOfIndexName(name ?? '')).toEqual(fault)
  })
})
