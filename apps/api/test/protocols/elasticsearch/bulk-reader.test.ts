import type { LightMyRequestResponse } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { faultOfIndexName } from '../../../src/protocols/elasticsearch/bulk-reader.ts'
import { buildTestApi, type TestApi } from '../../support/test-api.ts'

let api: TestApi

beforeEach(() => {
  api = buildTestApi()
})

afterEach(async () => {
  await api.close()
})

interface ItemAnswer {
  readonly _index: string
  readonly _id: string | null
  readonly status: number
  readonly error?: { readonly type: string; readonly reason: string }
}

const bulk = (body: string, url = '/elasticsearch/_bulk'): Promise<LightMyRequestResponse> =>
  api.post(body, { url })
async function itemsOf(body: string, url?: string): Promise<ItemAnswer[]> {
  const { items } = (await bulk(body, url)).json<{ items: Record<string, ItemAnswer>[] }>()
  return items.flatMap((item) => Object.values(item))
}
const metadata = (): unknown[] =>
  api.queue.rows.map(({ metadata_text }) => JSON.parse(metadata_text ?? '{}') as unknown)

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
    expect(metadata()).toEqual([{ _id: text }])
  })

  it('may have null for index and id', async () => {
    const action = '{"create":{"_index":null,"_id":null}}\n{"message":"m"}\n'
    expect(await itemsOf(action)).toMatchObject([{ _index: 'sluice', _id: null, status: 201 }])
    expect(await itemsOf(action, '/elasticsearch/logs/_bulk')).toMatchObject([
      { _index: 'logs', status: 201 },
    ])
    expect(metadata()).toEqual([{}, { _index: 'logs' }])
  })

  it.each(['{"_id":{}}', '{"_id":[1]}', '{"_index":{"a":1}}', '{"_index":[]}'])(
    'is malformed with %s',
    async (target) => {
      const answer = await bulk(`{"index":{}}\n{}\n{"index":${target}}\n{}\n`)
      expect(answer.statusCode).toBe(400)
      expect(answer.body).toContain('Malformed action/metadata line [3]. Expected a simple value for field')
      expect(api.queue.rows).toEqual([])
    },
  )

  it('with the name of an index that Elasticsearch rejects is an item with an error', async () => {
    const items = await itemsOf(
      '{"index":{"_index":"Logs","_id":"1"}}\n{"message":"a"}\n{"index":{"_index":"logs"}}\n{"message":"b"}\n',
    )
    expect(items).toEqual([
      {
        _index: 'Logs',
        _id: '1',
        status: 400,
        error: {
          type: 'invalid_index_name_exception',
          reason: 'Invalid index name [Logs], must be lowercase',
        },
      },
      { _index: 'logs', _id: null, status: 201, result: 'created' },
    ])
    expect(api.queue.rows.map(({ message }) => message)).toEqual(['b'])
  })

  it('may have an index although that of the path is invalid', async () => {
    const body = '{"index":{"_index":"a"}}\n{"message":"a"}\n{"index":{}}\n{"message":"b"}\n'
    const items = await itemsOf(body, '/elasticsearch/%01/_bulk')
    expect(items.map(({ status, error }) => [status, error?.type])).toEqual([
      [201, undefined],
      [400, 'invalid_index_name_exception'],
    ])
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
    for (const { _index: index, status, error } of items)
      expect([index, status, error]).toEqual([
        'A',
        400,
        { type: 'action_request_validation_exception', reason: 'The action must be index or create' },
      ])
  })
})

it.each([
  'filebeat-8.17.0',
  '.ds-logs-generic-default-2026.11.23-000001',
  'logs-nginx.access-default',
  'a',
  '...',
  'größe',
  '日志',
  'x'.repeat(255),
])('%s is the name of an index', (name) => {
  expect(faultOfIndexName(name)).toBeUndefined()
})

it.each([
  ['', 'must not be empty'],
  ['Logs', 'must be lowercase'],
  ['GRÖSSE', 'must be lowercase'],
  ['_all', "must not start with '_', '-', or '+'"],
  ['-a', "must not start with '_', '-', or '+'"],
  ['+a', "must not start with '_', '-', or '+'"],
  ['.', "must not be '.' or '..'"],
  ['..', "must not be '.' or '..'"],
  ['a#b', "must not contain '#'"],
  ['cluster:a', "must not contain ':'"],
  ['a\u{0}b', 'must not contain control characters'],
  ['a\u{7f}', 'must not contain control characters'],
  ['x'.repeat(256), 'index name is too long, (256 > 255)'],
  ['é'.repeat(128), 'index name is too long, (256 > 255)'],
])('%j %s', (name, fault) => {
  expect(faultOfIndexName(name)).toBe(fault)
})

it.each(Array.from(String.raw`\/*?"<>| ,`))('the character %s is not allowed', (character) => {
  expect(faultOfIndexName(`a${character}`)).toContain('must not contain the following characters')
})
