import { field, varint } from '@sluice/harness/otlp-logs'
import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { sharedTestApi } from '../../support/shared-api.ts'

const api = sharedTestApi()

const url = '/loki/api/v1/push'
const pushJson = (
  body: object | string,
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> => api.post(body, { url, headers })
const push = (body: Buffer, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> =>
  api.post(snappy(body), { url, headers: { 'content-type': 'application/x-protobuf', ...headers } })

/** One line in JSON, of a stream with these labels. */
const pushLine = (labels: object, value: unknown[] = ['0', 'x']): Promise<LightMyRequestResponse> =>
  pushJson({ streams: [{ stream: labels, values: [value] }] })

/** A block of literals: the form of data that does not become smaller. */
function snappy(bytes: Buffer): Buffer {
  const parts: Buffer[] = [varint(bytes.length)]
  for (let at = 0; at < bytes.length; at += 60) {
    const part = bytes.subarray(at, at + 60)
    parts.push(Buffer.from([(part.length - 1) << 2]), part)
  }
  return Buffer.concat(parts)
}

interface ProtoLine {
  readonly seconds?: number
  readonly nanos?: number
  readonly line: string | Buffer
  readonly metadata?: Readonly<Record<string, string>>
}

function stream(labels: string, lines: readonly ProtoLine[]): Buffer {
  const entries = lines.map(({ seconds = 1_763_632_800, nanos = 0, line, metadata = {} }) =>
    field.bytes(
      2,
      Buffer.concat([
        field.bytes(1, Buffer.concat([field.varint(1, seconds), field.varint(2, nanos)])),
        field.bytes(2, line),
        ...Object.entries(metadata).map(([name, value]) => pair(name, value)),
      ]),
    ),
  )
  return field.bytes(1, Buffer.concat([field.bytes(1, labels), ...entries, field.varint(3, 7)]))
}

/** Structured metadata of a line. */
const pair = (name: string, value: string): Buffer =>
  field.bytes(3, Buffer.concat([field.bytes(1, name), field.bytes(2, value)]))

const metadata = (): unknown[] =>
  api.queue.rows.map(({ metadata_text }) => JSON.parse(metadata_text ?? '{}') as unknown)

describe('a push request', () => {
  const expected = [
    {
      timestamp: '2025-11-20T10:00:00.123456Z',
      level: 'warn',
      service: 'shop',
      environment: 'production',
      message: 'one',
    },
    {
      timestamp: '2025-11-20T10:00:00.000000Z',
      level: 'error',
      service: 'shop',
      environment: 'production',
      message: '{"level":"debug"}',
    },
  ]
  const expectedMetadata = [
    { host: 'h', timeUnixNano: '1763632800123456789' },
    { trace_id: 't', host: 'h', level: 'warning', originalLevel: 'critical' },
  ]

  it('in JSON is stored', async () => {
    const answer = await pushJson({
      streams: [
        {
          values: [
            ['1763632800123456789', 'one'],
            ['1763632800000000000', '{"level":"debug"}', { trace_id: 't', detected_level: 'critical' }],
          ],
          stream: { app: 'shop', env: 'prod', host: 'h', level: 'warning' },
        },
      ],
    })
    expect([answer.statusCode, answer.body]).toEqual([204, ''])
    expect(api.queue.rows).toMatchObject([expected[0], { ...expected[1], level: 'warn' }])
    expect(metadata()).toEqual([
      expectedMetadata[0],
      { trace_id: 't', host: 'h', detected_level: 'critical' },
    ])
  })

  it('in Protocol Buffers is stored', async () => {
    const labels = '{app="shop", env="prod", host="h", level="warning"}'
    const answer = await push(
      Buffer.concat([
        stream(labels, [{ nanos: 123_456_789, line: 'one' }]),
        stream(labels, [{ line: '{"level":"debug"}', metadata: { trace_id: 't', level: 'critical' } }]),
      ]),
      { 'x-scope-orgid': 'tenant', 'content-encoding': 'snappy' },
    )
    expect([answer.statusCode, answer.body]).toEqual([204, ''])
    expect(api.queue.rows).toMatchObject(expected)
    expect(metadata()).toEqual([
      expectedMetadata[0],
      { trace_id: 't', host: 'h', level_2: 'warning', originalLevel: 'critical' },
    ])
  })

  it('may be compressed JSON, and may have a key as the password', async () => {
    const body = gzipSync(JSON.stringify({ streams: [{ stream: {}, values: [['0', 'x']] }] }))
    const answer = await api.post(body, {
      url,
      headers: {
        'content-encoding': 'gzip',
        'content-type': 'application/json; charset=utf-8',
        authorization: `Basic ${Buffer.from(`tenant:${api.key}`).toString('base64')}`,
      },
    })
    expect(answer.statusCode).toBe(204)
    expect(api.queue.rows).toMatchObject([
      { message: 'x', level: 'log', timestamp: '2026-11-20 12:00:00.005' },
    ])
  })

  it.each<[Record<string, string>, string]>([
    [{ service_name: 'a', app: 'b' }, 'a'],
    [{ service_name: 'unknown_service', job: 'c' }, 'c'],
    [{ app: '', job: 'x'.repeat(limits.serviceCharactersMax + 1) }, ''],
  ])('has the service of its labels %j', async (labels, service) => {
    await pushLine(labels)
    expect(api.queue.rows).toMatchObject([{ service }])
  })

  it.each<[Record<string, string>, string, Record<string, string>]>([
    [{ env: 'qa' }, '', { env: 'qa' }],
    [{ environment: 'qa', env: 'prod' }, 'production', { environment: 'qa' }],
    [{ environment: 'staging', env: 'prod' }, 'staging', { env: 'prod' }],
  ])(
    'has the environment of its labels %j, if it is one of the three',
    async (labels, environment, others) => {
      await pushLine(labels)
      expect(api.queue.rows).toMatchObject([{ environment }])
      expect(metadata()).toEqual([others])
    },
  )

  it('keeps all values of a name that is sent twice', async () => {
    const line = [field.bytes(2, 'x'), pair('a', '1'), pair('a', '2'), pair('a_2', '3'), pair('a', '4')]
    const labels = field.bytes(1, '{b="1",b_2="2",b="3"}')
    await push(field.bytes(1, Buffer.concat([labels, field.bytes(2, Buffer.concat(line))])))
    expect(metadata()).toEqual([{ a: '1', a_2: '2', a_2_2: '3', a_3: '4', b: '1', b_2: '2', b_3: '3' }])
  })

  it.each([
    { streams: [] },
    { streams: null },
    { streams: [{ stream: { app: 'x' }, values: [] }] },
    { streams: [{ stream: {}, values: null }] },
  ])('may be empty: %j', async (body) => {
    expect((await pushJson(body)).statusCode).toBe(204)
    expect(api.queue.adds).toEqual([])
  })

  it.each<[string, string]>([
    ['without streams', '{"foo":1}'],
    ['that is an array', '[{"stream":{},"values":[["0","x"]]}]'],
    ['that is a number', '5'],
    ['that is null', 'null'],
    ['whose streams are an object', '{"streams":{"stream":{},"values":[["0","x"]]}}'],
    ['with a stream that is a text', '{"streams":["x"]}'],
    ['with a stream that is null', '{"streams":[null]}'],
    ['with lines in an object', '{"streams":[{"stream":{"app":"x"},"values":{"0":"x"}}]}'],
    [
      'in an earlier form',
      '{"streams":[{"labels":"{}","entries":[{"ts":"2026-11-20T00:00:00Z","line":"x"}]}]}',
    ],
    ['with a stream without lines between others', '{"streams":[{"values":[["0","x"]]},{},{"values":[]}]}'],
  ])('in JSON of another form is rejected, because its lines would be lost: one %s', async (_what, body) => {
    const answer = await pushJson(body)
    expect(answer.statusCode).toBe(400)
    expect(answer.body).toContain('Send {"streams": [')
    expect(api.queue.adds).toEqual([])
  })

  it('keeps a label that has the name of an added member', async () => {
    const labels = { timeUnixNano: 'own' }
    await pushLine(labels, ['1763632800123456789', 'x'])
    expect(metadata()).toEqual([{ timeUnixNano: 'own', timeUnixNano_2: '1763632800123456789' }])
  })

  it('may have labels of 16 KiB in JSON', async () => {
    for (const [characters, status] of [
      [16_384, 204],
      [16_385, 400],
    ] as const) {
      const labels = { name: 'v'.repeat(characters - '{"name":""}'.length) }
      const answer = await pushLine(labels)
      expect(answer.statusCode).toBe(status)
    }
  })

  it('stores the valid lines, and rejects the others with 400, after which no client retries', async () => {
    const answer = await pushJson({
      streams: [
        {
          stream: { app: 'x' },
          values: [
            ['0', 'first'],
            ['soon', 'x'],
            ['9'.repeat(19), 'x'],
            ['0', 7],
            7,
            ['0', 'm'.repeat(limits.messageCharactersMax + 1)],
            ['0', 'x', []],
            ['0', 'x', {}, 'lost'],
            ['0', 'last'],
          ],
        },
        { stream: 7, values: [['0', 'x']] },
      ],
    })
    expect(answer.statusCode).toBe(400)
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8')
    expect(answer.body).toBe(
      '2 lines are stored, 8 are rejected. Line 1: /timestamp must be nanoseconds of the years 1970–2261.\n',
    )
    expect(api.queue.rows.map(({ message }) => message)).toEqual(['first', 'last'])
  })

  it('reports lines of streams with malformed labels, and lines that are too large', async () => {
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`name-${i}`, 'v'.repeat(200)]))
    const answer = await push(
      Buffer.concat([
        stream('app=x', [{ line: 'a' }, { line: 'b' }]),
        stream('{}', [
          { line: 'c', metadata: many },
          { line: 'd'.repeat(300_000) },
          { line: 'e'.repeat(600_000) },
          { seconds: 10_000_000_000, line: 'f' },
        ]),
        stream('{}', [{ line: 'kept' }]),
      ]),
    )
    expect(answer.body).toMatch(
      /^1 lines are stored, 6 are rejected\. Line 0: has a stream without valid labels/,
    )
    expect(api.queue.rows.map(({ message }) => message)).toEqual(['kept'])
  })

  it('replaces bytes of a line that are not UTF-8', async () => {
    await push(stream('{}', [{ line: Buffer.from([0x61, 0xff, 0x62]) }]))
    expect(api.queue.rows).toMatchObject([{ message: 'a\u{FFFD}b' }])
  })

  it.each([
    ['valid', 'x'],
    ['invalid', '\ud800'],
  ])('cannot become much larger than its body by %s lines', async (_what, line) => {
    const labels = { app: 'x', long: 'l'.repeat(16_000) }
    const values = Array.from({ length: 4_000 }, () => ['0', line])
    const answer = await pushJson({ streams: [{ stream: labels, values }] })
    expect(answer.statusCode).toBe(413)
    expect(answer.body).toMatch(/rows of the request have more than/)
    expect(api.queue.adds).toEqual([])
  })

  it('may have 256 names in the metadata of a line, with those of its labels', async () => {
    const labels = Object.fromEntries(Array.from({ length: 254 }, (_, i) => [`l${i}`, 'x']))
    const values = [
      ['1763632800123456789', 'two more', { a: '1', l0: 'x', level: 'info' }],
      ['1763632800123456789', 'three more', { a: '1', l0: 'y', level: 'info' }],
      ['0', 'two more', { a: '1', l0: 'y', level: 'info' }],
      ['0', 'three more', { a: '1', l0: 'y', level: 'info', severity: 'warn' }],
      ['0', 'three more', { a: '1', l0: 'y', level: 'critical' }],
      ['0', 'two more', { a: '1', level: 'critical' }],
    ]
    const answer = await pushJson({ streams: [{ stream: { ...labels, app: 'shop' }, values }] })
    expect(answer.body).toBe(
      '3 lines are stored, 3 are rejected. Line 1: /metadata must have at most 256 names.\n',
    )
    expect(metadata().map((members) => Object.keys(members as object).length)).toEqual([256, 256, 256])
  })

  const json = 'application/json'
  const proto = 'application/x-protobuf'
  it.each<[string, string | Buffer, string, number, string]>([
    ['empty JSON', '', json, 400, 'Send an entry'],
    ['JSON that ends early', '{"streams":[{"values":[["0","x"]]}', json, 400, 'The text ends too early'],
    ['JSON that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), json, 400, 'UTF-8'],
    ['an empty block', '', proto, 400, 'Send an entry'],
    ['bytes that are not snappy', 'xxx', proto, 400, 'not snappy'],
    ['a block that declares too much', Buffer.from([255, 255, 255, 255, 15, 0]), proto, 413, 'at most'],
    ['bytes that are no request', snappy(Buffer.from('zzz')), proto, 400, 'not a PushRequest'],
    ['a stream that ends too early', snappy(Buffer.from([10, 200])), proto, 400, 'not a PushRequest'],
  ])('with %s is rejected as text', async (_what, body, type, status, text) => {
    const answer = await api.post(body, { url, headers: { 'content-type': type } })
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([status, 'text/plain; charset=utf-8'])
    expect(answer.body).toContain(text)
    expect(api.queue.adds).toEqual([])
  })

  it('with one other byte anywhere is stored or rejected', async () => {
    const valid = stream('{app="x"}', [{ line: 'ab', nanos: 5, metadata: { k: 'v' } }])
    for (let at = 0; at < valid.length; at += 1) {
      for (const byte of [0, 1, 0x7f, 0x80, 0xff]) {
        const changed = Buffer.from(valid)
        changed[at] = byte
        expect([204, 400]).toContain((await push(changed)).statusCode)
      }
    }
    for (let end = 1; end < valid.length; end += 1) {
      expect((await push(valid.subarray(0, end))).statusCode).toBe(400)
    }
  })
})
