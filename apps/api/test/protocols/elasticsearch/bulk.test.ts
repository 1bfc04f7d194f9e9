import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it } from 'vitest'
import { faultOfIndexName } from '../../../src/protocols/elasticsearch/bulk-reader.ts'
import { sharedTestApi, storedMetadata, storedRows } from '../../support/shared-api.ts'

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
interface Item {
  readonly action: string
  readonly _index: string
  readonly _id: string | null
  readonly status: number
  readonly error?: { readonly type: string; readonly reason: string }
}

/** The items of a response, with their actions. */
async function itemsOf(body: string | Buffer, url?: string): Promise<Item[]> {
  const { items } = (await bulk(body, url)).json<{ items: Record<string, Omit<Item, 'action'>>[] }>()
  return items.flatMap((one) => Object.entries(one).map(([action, item]) => Object.assign(item, { action })))
}

describe('a bulk request', () => {
  it('stores its documents, and responds with an item for each', async () => {
    const response = await bulk(
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
    expect(response.statusCode).toBe(200)
    expect(response.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-elastic-product': 'Elasticsearch',
    })
    expect(response.body).toBe(
      '{"took":0,"errors":false,"items":[' +
        '{"create":{"_index":"filebeat","_id":"a","status":201,"result":"created"}},' +
        '{"index":{"_index":"sluice","_id":null,"status":201,"result":"created"}}]}',
    )
    expect(storedRows(api)).toMatchObject([
      { timestamp: '2026-11-20T10:00:00.123456Z', level: 'warn', message: 'one', service: 'shop' },
      { level: 'error', message: 'two', service: '' },
    ])
    expect(storedMetadata(api)).toEqual([
      {
        log: { file: { path: '/var/log/x' } },
        service: { type: 'x' },
        host: { name: 'h' },
        _index: 'filebeat',
        _id: 'a',
      },
      { originalLevel: 'FATAL' },
    ])
  })

  it('may have an index in its path, blank lines, CRLF, and no newline at its end', async () => {
    const response = await bulk(
      '\r\n\n{"index":{}}\r\n{"message":"a"}\n\n\n{"index":{"_index":"own"}}\n{"message":"b"}',
      '/elasticsearch/logs/_bulk',
    )
    expect(response.json()).toMatchObject({ errors: false })
    expect(storedRows(api)).toMatchObject([
      { message: 'a', metadata: { _index: 'logs' } },
      { message: 'b', metadata: { _index: 'own' } },
    ])
  })

  it('may be a PUT, and may have the media type of any version', async () => {
    const response = await api.post(ndjson({ index: {} }, { message: 'm' }), {
      method: 'PUT',
      url: '/elasticsearch/_bulk/',
      headers: { 'content-type': 'application/vnd.elasticsearch+x-ndjson; compatible-with=9' },
    })
    expect(response.statusCode).toBe(200)
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
    expect(items.map(({ action, status }) => `${action} ${status}`).join()).toBe(
      'index 201,index 400,create 400,update 400,delete 400,index 400,index 400,index 400,index 201',
    )
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

  const valid = ndjson({ index: {} }, { message: 'a' })

  it.each([
    [`${valid}7`, 'Expected one of'],
    [`${valid}{`, 'The text ends too early'],
    [`${valid}{"store":{}}`, 'Expected one of'],
    [`${valid}{"index":{},"create":{}}`, 'Expected one of'],
    [`${valid}{"index":7}`, 'Expected one of'],
    [`${valid}{"index":{"_id":{}}}`, 'line [3]. Expected a simple value for field [_id]'],
    [`${valid}{"index":{"_index":[]}}`, 'Expected a simple value for field [_index]'],
    [`${valid}{"index":{"_id":"${'x'.repeat(10_000)}"}}`, 'Expected an object'],
    [`${valid}{"index":{}}`, 'The document after the action is missing'],
    ['', 'request body is required'],
    ['\n\r\n', 'no requests added'],
  ])('is rejected as a whole if an action is malformed, or if there is none: %j', async (body, reason) => {
    const response = await bulk(body)
    expect(response.statusCode).toBe(400)
    expect(response.json<{ error: { reason: string } }>().error.reason).toContain(reason)
    expect(api.queue.rows).toEqual([])
  })

  it('with too many documents is rejected with 413, after which Filebeat divides its batch', async () => {
    const response = await bulk('{"index":{}}\n{}\n'.repeat(limits.recordsPerRequestMax + 1))
    expect(response.statusCode).toBe(413)
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
    ['null', null],
  ])('with the id %s keeps it as a string', async (id, string) => {
    const [item] = await itemsOf(`{"index":{"_index":null,"_id":${id}}}\n{"message":"m"}\n`)
    expect(item).toMatchObject({ _index: 'sluice', _id: string, status: 201 })
    expect(storedMetadata(api)).toEqual([string === null ? {} : { _id: string }])
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
    const shown = `${'x'.repeat(40)}…`
    const reason = `Invalid index name [${shown}], index name is too long, (7000 > 255)`
    expect(item).toMatchObject({ _index: shown, error: { reason } })
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
])('filter_path selects parts of the response: %s', async (filter, expected) => {
  const body = '{"index":{}}\n{"message":"a"}\n{"index":{}}\n7\n'
  const response = await bulk(body, `/elasticsearch/_bulk?filter_path=${filter}`)
  const error = '{"type":"document_parsing_exception","reason":"The document must be an object"}'
  expect(response.body).toBe(expected.replace('E', error))
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
    const response = await bulk('{"index":{}}\n{}\n', undefined, { authorization: authorization(api.key) })
    expect(response.statusCode).toBe(200)
  })

  it.each(['ApiKey x', 'Basic', 'Basic Og==', 'ApiKey slk_', 'Splunk x', ''])(
    'is not %j',
    async (authorization) => {
      const response = await bulk('{"index":{}}\n{}\n', undefined, { authorization })
      expect(response.statusCode).toBe(401)
      expect(response.json()).toMatchObject({ status: 401, error: { type: 'security_exception' } })
    },
  )
})

describe('what clients ask before they send', () => {
  it.each([
    ['', '"number":"9.99.0"'],
    ['/', '"tagline":"You Know, for Search"'],
    ['/_license', '"status":"active"'],
    ['/_cluster/health', '"status":"green"'],
    ['/_cat/health?h=status', 'green\n'],
  ])('has a response with a valid key: %j', async (path, part) => {
    const get = (authorization: string): Promise<LightMyRequestResponse> =>
      api.app.inject({ url: `/elasticsearch${path}`, headers: { authorization } })
    const response = await get(`Bearer ${api.key}`)
    expect(response.body).toContain(part)
    expect(response.headers['x-elastic-product']).toBe('Elasticsearch')
    expect((await get('ApiKey none')).json()).toMatchObject({ status: 401 })
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
