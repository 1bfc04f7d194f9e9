import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it } from 'vitest'
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
    const service = { name: 'shop', type: 'x' }
    const log = { level: 'warning', file: { path: '/var/log/x' } }
    const response = await bulk(
      ndjson(
        { create: { _index: 'filebeat', _id: 'a' } },
        { '@timestamp': '2026-11-20T10:00:00.123456Z', message: 'one', log, service, host: { name: 'h' } },
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
      { timestamp: '2026-11-20 10:00:00.123456', level: 'warn', message: 'one', service: 'shop' },
      { level: 'error', message: 'two', service: '' },
    ])
    const { file } = log
    expect(storedMetadata(api)).toEqual([
      { log: { file }, service: { type: 'x' }, host: { name: 'h' }, _index: 'filebeat', _id: 'a' },
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
    const documents = [
      { message: 'first' },
      '{"message":',
      '[1]',
      Buffer.from([0x22, 0xff, 0x22]),
      { message: 'm'.repeat(limits.messageCharactersMax + 1) },
      `{"message":"deep","a":${'['.repeat(40)}${']'.repeat(40)}}`,
      Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`n${i}`, i])),
    ]
    const lines = documents.flatMap((document) => {
      const line =
        typeof document === 'string' || Buffer.isBuffer(document) ? document : JSON.stringify(document)
      return [Buffer.from('{"index":{}}\n'), Buffer.from(line), Buffer.from('\n')]
    })
    const others = ndjson({ update: {} }, { doc: {} }, { delete: {} }, { create: {} }, { message: 'last' })
    const items = await itemsOf(Buffer.concat([...lines, Buffer.from(others)]))
    expect(items.map(({ action, status }) => `${action} ${status}`).join()).toBe(
      `index 201,${'index 400,'.repeat(3)}${'index 201,'.repeat(3)}update 400,delete 400,create 201`,
    )
    expect(items[1]?.error).toMatchObject({ type: 'document_parsing_exception' })
    expect(api.queue.rows.map(({ message = '' }) => message.slice(0, 5))).toEqual([
      'first',
      'mmmmm',
      'deep',
      '{"n0"',
      'last',
    ])
  })

  it('of winston-elasticsearch has `errors` only if nothing is stored: the client would send all documents again', async () => {
    const action = { index: { _index: 'logs' }, attempts: 0 }
    const mixed = await bulk(ndjson(action, { message: 'a' }, action, '7'))
    expect(mixed.json()).toMatchObject({ items: [{ index: { status: 201 } }, { index: { status: 400 } }] })
    expect(mixed.body).not.toContain('errors')
    expect((await bulk(ndjson(action, '7'))).json()).toMatchObject({ errors: true })
    expect(api.queue.rows).toMatchObject([{ message: 'a' }])
  })

  const valid = ndjson({ index: {} }, { message: 'a' })

  it.each([
    [`${valid}7`, 'Expected one of'],
    [`${valid}{`, 'the text ends too early'],
    [`${valid}{"store":{}}`, 'Expected one of'],
    [`${valid}{"attempts":0,"index":{}}`, 'Expected one of'],
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

it.each([
  ['12345678901234567890', '12345678901234567890'],
  ['1e400', '1e400'],
  ['"a"', 'a'],
  ['null', null],
])('an action with the id %s keeps it as a string', async (id, string) => {
  const [item] = await itemsOf(`{"index":{"_index":null,"_id":${id}}}\n{"message":"m"}\n`)
  expect(item).toMatchObject({ _index: 'sluice', _id: string, status: 201 })
  expect(storedMetadata(api)).toEqual([string === null ? {} : { _id: string }])
})

it.each([
  ['.ds-logs-generic-default-2026.11.23-000001'],
  ['größe'],
  ['x'.repeat(255)],
  ['', 'must not be empty'],
  ['Logs', 'must be lowercase'],
  ['GRÖSSE', 'must be lowercase'],
  ['_all', "must not start with '_', '-', or '+'"],
  ['..', "must not be '.' or '..'"],
  ['a#b', "must not contain '#'"],
  ['cluster:a', "must not contain ':'"],
  ['a\u{7f}', 'must not contain control characters'],
  ['é'.repeat(128), 'index name is too long, (256 > 255)'],
  ...Array.from(String.raw`\/*?"<>| ,`, (character) => [`a${character}`, 'must not contain the following']),
])(
  'an action may have an index of the name that Elasticsearch accepts: %j',
  async (name = '', fault = '') => {
    const [item, other] = await itemsOf(ndjson({ index: { _index: name } }, {}, { index: {} }, {}))
    expect([item?.status, other?.status]).toEqual([fault === '' ? 201 : 400, 201])
    expect(api.queue.rows.length).toBe(fault === '' ? 2 : 1)
    if (fault === '') return
    const shown = name.length > 40 ? `${name.slice(0, 40)}…` : name
    const reason = expect.stringContaining(`Invalid index name [${shown}], ${fault}`) as string
    expect(item).toMatchObject({ _index: shown, error: { type: 'invalid_index_name_exception', reason } })
  },
)

it('an action that is not supported has that reason, whatever its index is', async () => {
  const items = await itemsOf('{"update":{"_index":"A"}}\n{"doc":{}}\n{"delete":{"_index":"A"}}\n')
  const error = { type: 'action_request_validation_exception', reason: 'The action must be index or create' }
  expect(items).toMatchObject([
    { action: 'update', _index: 'A', status: 400, error },
    { action: 'delete', _index: 'A', status: 400, error },
  ])
})

it('a key may be in any form of Elasticsearch', async () => {
  for (const authorization of [
    `ApiKey ${base64(`some-id:${api.key}`)}`,
    `apikey ${base64(api.key)}`,
    `ApiKey ${api.key}`,
    `Basic ${base64(`a:b:${api.key}`)}`,
    `Bearer ${api.key}`,
  ])
    expect((await bulk('{"index":{}}\n{}\n', undefined, { authorization })).statusCode).toBe(200)
  for (const authorization of ['ApiKey x', 'Basic', 'Basic Og==', 'ApiKey slk_', 'Splunk x', '']) {
    const response = await bulk('{"index":{}}\n{}\n', undefined, { authorization })
    expect(response.statusCode).toBe(401)
    expect(response.json()).toMatchObject({ status: 401, error: { type: 'security_exception' } })
  }
})

it.each([
  ['', '"number":"9.99.0"'],
  ['/', '"tagline":"You Know, for Search"'],
  ['/_license', '"status":"active"'],
  ['/_cluster/health', '"status":"green"'],
  ['/_cat/health?h=status', 'green\n'],
])('what clients ask before they send has a response with a valid key: %j', async (path, part) => {
  const get = (authorization: string): Promise<LightMyRequestResponse> =>
    api.app.inject({ url: `/elasticsearch${path}`, headers: { authorization } })
  const response = await get(`Bearer ${api.key}`)
  expect(response.body).toContain(part)
  expect(response.headers['x-elastic-product']).toBe('Elasticsearch')
  expect((await get('ApiKey none')).json()).toMatchObject({ status: 401 })
})
