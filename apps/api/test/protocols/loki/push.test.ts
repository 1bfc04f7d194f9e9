import { field, varint } from '@sluice/harness/otlp-logs'
import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { sharedTestApi, storedMetadata, storedRows } from '../../support/shared-api.ts'
import { embed } from '../otlp/otlp-api.ts'

const api = sharedTestApi()

const url = '/loki/api/v1/push'
const pushJson = (body: object | string): Promise<LightMyRequestResponse> => api.post(body, { url })
const push = (body: Buffer, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> =>
  api.post(snappy(body), { url, headers: { 'content-type': 'application/x-protobuf', ...headers } })

/** One line in JSON, of a stream with these labels. */
const pushLine = (labels: object): Promise<LightMyRequestResponse> =>
  pushJson({ streams: [{ stream: labels, values: [['0', 'x']] }] })

/** A block of literals: the form of data that does not become smaller. */
function snappy(bytes: Buffer): Buffer {
  const parts: Buffer[] = [varint(bytes.length)]
  for (let at = 0; at < bytes.length; at += 60) {
    const part = bytes.subarray(at, at + 60)
    parts.push(Buffer.from([(part.length - 1) << 2]), part)
  }
  return Buffer.concat(parts)
}

/** @param nanos after a second of 2025 */
function lineOf(text: string | Buffer, nanos = 0, ...metadata: readonly Buffer[]): Buffer {
  const time = embed(1, field.varint(1, 1_763_632_800), field.varint(2, nanos))
  return embed(2, time, field.bytes(2, text), ...metadata)
}

/** Structured metadata of a line. */
const pair = (name: string, value: string): Buffer => embed(3, field.bytes(1, name), field.bytes(2, value))

const stream = (labels: string, ...lines: readonly Buffer[]): Buffer =>
  embed(1, field.bytes(1, labels), ...lines, field.varint(3, 7))

/** Names that begin with a letter, and their values. */
const named = (letter: string, count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${letter}${i}`, 'x']))

describe('a push request', () => {
  const columns = { service: 'shop', environment: 'production' }
  const one = {
    ...columns,
    timestamp: '2025-11-20 10:00:00.123456',
    level: 'warn',
    message: 'one',
    metadata: { host: 'h', timeUnixNano: '1763632800123456789' },
  }
  const two = { ...columns, timestamp: '2025-11-20 10:00:00.000000', message: '{"level":"debug"}' }

  it('in JSON is stored', async () => {
    const metadata = { trace_id: 't', detected_level: 'critical' }
    const values = [
      ['1763632800123456789', 'one'],
      ['1763632800000000000', '{"level":"debug"}', metadata],
    ]
    const labels = { app: 'shop', env: 'prod', host: 'h', level: 'warning' }
    const response = await pushJson({ streams: [{ values, stream: labels }] })
    expect([response.statusCode, response.body]).toEqual([204, ''])
    expect(storedRows(api)).toMatchObject([
      one,
      { ...two, level: 'warn', metadata: { ...metadata, host: 'h' } },
    ])
  })

  it('in Protocol Buffers is stored', async () => {
    const labels = '{app="shop", env="prod", host="h", level="warning"}'
    const line = lineOf('{"level":"debug"}', 0, pair('trace_id', 't'), pair('level', 'critical'))
    const body = Buffer.concat([stream(labels, lineOf('one', 123_456_789)), stream(labels, line)])
    const response = await push(body, { 'x-scope-orgid': 'tenant', 'content-encoding': 'snappy' })
    expect([response.statusCode, response.body]).toEqual([204, ''])
    const metadata = { trace_id: 't', host: 'h', level_2: 'warning', originalLevel: 'critical' }
    expect(storedRows(api)).toMatchObject([one, { ...two, level: 'error', metadata }])
  })

  describe('whose lines are JSON, by its header,', () => {
    const record = { level: 50, time: 1_763_632_800_123, pid: 7, hostname: 'h', msg: 'late', orderId: 5 }
    const labels = { level: 'error', hostname: 'h', app: 'shop', env: 'prod' }
    const json = { 'sluice-loki-lines': 'json' }
    const rows = [
      {
        ...columns,
        timestamp: '2025-11-20 10:00:00.123000',
        level: 'error',
        message: 'late',
        metadata: { pid: 7, hostname: 'h', orderId: 5 },
      },
      { ...columns, level: 'error', message: '{"a":', metadata: { hostname: 'h' } },
    ]

    it('has the records of loggers', async () => {
      const values = [
        ['1763632800123000000', JSON.stringify(record), { orderId: '5' }],
        ['0', '{"a":'],
      ]
      const response = await api.post({ streams: [{ stream: labels, values }] }, { url, headers: json })
      expect(response.statusCode).toBe(204)
      expect(storedRows(api)).toMatchObject(rows)
      expect(storedMetadata(api)).toEqual(rows.map(({ metadata }) => metadata))
    })

    it('has them in Protocol Buffers', async () => {
      const text = Object.entries(labels).map(([name, value]) => `${name}="${value}"`)
      const lines = [lineOf(JSON.stringify(record), 123_000_000), lineOf('{"a":')]
      await push(stream(`{${text.join(',')}}`, ...lines), json)
      expect(storedRows(api)).toMatchObject(rows)
      expect(storedMetadata(api)).toEqual(rows.map(({ metadata }) => metadata))
    })

    it('keeps what labels and structured metadata say that its lines do not', async () => {
      const line = { level: 'fatal', time: '2025-11-20T09:00:00Z', message: 'x', service: 'till', a: 1 }
      const values = [['1763632800000000000', JSON.stringify(line), { a: '2' }]]
      await api.post({ streams: [{ stream: { ...labels, a: '3' }, values }] }, { url, headers: json })
      expect(storedRows(api)).toMatchObject([
        { service: 'till', level: 'error', timestamp: '2025-11-20 10:00:00.000000', message: 'x' },
      ])
      const { level: _repeats, env: _column, ...kept } = labels
      expect(storedMetadata(api)).toEqual([
        { originalLevel: 'fatal', time: line.time, a: 1, a_2: '2', a_3: '3', ...kept },
      ])
    })

    it('rejects another value of the header', async () => {
      const response = await api.post({ streams: [] }, { url, headers: { 'sluice-loki-lines': 'logfmt' } })
      expect([response.statusCode, response.body]).toEqual([
        400,
        'Sluice-Loki-Lines has one value, "json". Send it once.\n',
      ])
    })
  })

  it('may be compressed JSON, and may have a key as the password', async () => {
    const response = await api.post(gzipSync('{"streams":[{"stream":{},"values":[["0","x"]]}]}'), {
      url,
      headers: {
        'content-encoding': 'gzip',
        authorization: `Basic ${Buffer.from(`tenant:${api.key}`).toString('base64')}`,
      },
    })
    expect(response.statusCode).toBe(204)
    const timestamp = '2026-11-20 12:00:00.005000'
    expect(api.queue.rows).toMatchObject([{ message: 'x', level: 'log', timestamp }])
  })

  it.each<[labels: Record<string, string>, row: object]>([
    [{ service_name: 'a', app: 'b' }, { service: 'a' }],
    [{ service_name: 'unknown_service', job: 'c' }, { service: 'c' }],
    [{ app: '', job: 'x'.repeat(limits.serviceCharactersMax + 1) }, { service: '' }],
    [{ env: 'qa' }, { environment: '', metadata: { env: 'qa' } }],
    [
      { environment: 'staging', env: 'prod' },
      { environment: 'staging', metadata: { env: 'prod' } },
    ],
  ])('has the service and the environment of its labels %j', async (labels, row) => {
    await pushLine(labels)
    expect(storedRows(api)).toMatchObject([row])
  })

  it('keeps all values of a name that is sent twice', async () => {
    const pairs = [pair('a', '1'), pair('a', '2'), pair('a_2', '3'), pair('a', '4')]
    await push(stream('{b="1",b_2="2",b="3"}', lineOf('x', 0, ...pairs)))
    expect(storedMetadata(api)).toEqual([
      { a: '1', a_2: '2', a_2_2: '3', a_3: '4', b: '1', b_2: '2', b_3: '3' },
    ])
  })

  it.each([
    '{"streams":null}',
    '{"streams":[{"stream":{"app":"x"},"values":[]}]}',
    '{"streams":[{"stream":{},"values":null}]}',
  ])('may be empty: %s', async (body) => {
    expect((await pushJson(body)).statusCode).toBe(204)
    expect(api.queue.adds).toEqual([])
  })

  it.each([
    '[{"stream":{},"values":[["0","x"]]}]',
    '{"streams":{"stream":{},"values":[["0","x"]]}}',
    '{"streams":[{"stream":{"app":"x"},"values":{"0":"x"}}]}',
    // An earlier form.
    '{"streams":[{"labels":"{}","entries":[{"ts":"2026-11-20T00:00:00Z","line":"x"}]}]}',
    '{"streams":[{"values":[["0","x"]]},{},{"values":[]}]}',
  ])('in JSON of another form is rejected, because its lines would be lost: %s', async (body) => {
    const response = await pushJson(body)
    expect(response.statusCode).toBe(400)
    expect(response.body).toContain('Send {"streams": [')
    expect(api.queue.adds).toEqual([])
  })

  it('may have labels of 16 KiB', async () => {
    const value = 'v'.repeat(16_384 - 'name'.length)
    await pushLine({ name: value })
    await pushLine({ name: `${value}v`, a: 'kept' })
    expect(storedMetadata(api)).toEqual([{ name: value }, { a: 'kept', sluiceRepaired: ['too_large'] }])
  })

  it('stores the valid lines and answers 204, because some clients send all lines once more after 400', async () => {
    const invalid = [['0', 7], 7, ['0', 'x', []], ['0', 'x', {}, 'lost']]
    const values = [['0', 'first'], ...invalid, ['soon', 'last']]
    const streams = [
      { stream: { app: 'x' }, values },
      { stream: 7, values: [['0', 'x']] },
    ]
    const response = await pushJson({ streams })
    expect([response.statusCode, response.body]).toEqual([204, ''])
    expect(api.queue.rows.map(({ message }) => message)).toEqual(['first', 'last'])
    expect(storedMetadata(api)[1]).toEqual({ sluiceRepaired: ['invalid_timestamp'] })
  })

  it('is answered with 400 if all of its lines are rejected', async () => {
    const response = await pushJson({ streams: [{ stream: {}, values: [['0', 7], 7] }] })
    expect(response.statusCode).toBe(400)
    expect(response.headers['content-type']).toBe('text/plain; charset=utf-8')
    expect(response.body).toMatch(/^All lines are rejected\. Line 0: must be an array of a time/)
    expect(api.queue.adds).toEqual([])
  })

  it('reports lines of streams with malformed labels, and repairs lines that are too large', async () => {
    const many = Array.from({ length: 400 }, (_, i) => pair(`name-${i}`, 'v'.repeat(200)))
    const large = [lineOf('c', 0, ...many), lineOf('d'.repeat(300_000)), lineOf('e'.repeat(600_000))]
    const late = embed(2, embed(1, field.varint(1, 10_000_000_000)), field.bytes(2, 'f'))
    const malformed = stream('app=x', lineOf('a'), lineOf('b'))
    const streams = [malformed, stream('{}', ...large, late)]
    const response = await push(malformed)
    expect(response.body).toMatch(/^All lines are rejected\. Line 0: has a stream without valid labels/)
    await push(Buffer.concat([...streams, stream('{}', lineOf('kept'))]))
    expect(api.queue.rows.map(({ message }) => message?.[0])).toEqual(['c', 'd', 'e', 'f', 'k'])
    const marks = storedMetadata(api).map(
      (metadata) => (metadata as { sluiceRepaired?: unknown }).sluiceRepaired,
    )
    const large256 = ['too_many_names']
    expect(marks).toEqual([large256, ['too_long'], ['too_long'], ['invalid_timestamp'], undefined])
  })

  it('replaces bytes of a line that are not UTF-8', async () => {
    await push(stream('{}', lineOf(Buffer.from([0x61, 0xff, 0x62]))))
    expect(api.queue.rows).toMatchObject([{ message: 'a\u{FFFD}b' }])
  })

  it('cannot become much larger than its body, also by invalid lines', async () => {
    const labels = { app: 'x', long: 'l'.repeat(16_000) }
    const values = Array.from({ length: 4_000 }, () => ['0', '\ud800'])
    const response = await pushJson({ streams: [{ stream: labels, values }] })
    expect(response.statusCode).toBe(413)
    expect(response.body).toMatch(/rows of the request have more than/)
    expect(api.queue.adds).toEqual([])
  })

  it('may have 256 names in the metadata of a line, including the names of its labels', async () => {
    const pairs = named('p', 191)
    const at = '1763632800123456789'
    const values = [
      [at, 'two more', { ...pairs, a: '1', l0: 'x', level: 'info' }],
      [at, 'three more', { ...pairs, a: '1', l0: 'y', level: 'info' }],
      ['0', 'two more', { ...pairs, a: '1', l0: 'y', level: 'info' }],
      ['0', 'three more', { ...pairs, a: '1', l0: 'y', level: 'critical' }],
    ]
    const response = await pushJson({ streams: [{ stream: { ...named('l', 63), app: 'shop' }, values }] })
    expect(response.statusCode).toBe(204)
    expect(storedMetadata(api).map((members) => Object.keys(members as object).length)).toEqual([
      256, 256, 256, 256,
    ])
    expect(storedMetadata(api)[1]).toHaveProperty('sluiceRepaired', ['too_many_names'])
  })

  const json = 'application/json'
  const proto = 'application/x-protobuf'
  it.each<[string, string | Buffer, string, number, string]>([
    ['JSON that ends early', '{"streams":[{"values":[["0","x"]]}', json, 400, 'The text ends too early'],
    ['JSON that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), json, 400, 'UTF-8'],
    ['an empty block', '', proto, 400, 'Send an entry'],
    ['bytes that are not snappy', 'xxx', proto, 400, 'not snappy'],
    ['a block that declares too much', Buffer.from([255, 255, 255, 255, 15, 0]), proto, 413, 'at most'],
    ['bytes that are no request', snappy(Buffer.from('zzz')), proto, 400, 'not a PushRequest'],
  ])('with %s is rejected in plain text', async (_what, body, type, status, text) => {
    const response = await api.post(body, { url, headers: { 'content-type': type } })
    expect([response.statusCode, response.headers['content-type']]).toEqual([
      status,
      'text/plain; charset=utf-8',
    ])
    expect(response.body).toContain(text)
    expect(api.queue.adds).toEqual([])
  })
})
