import { encodeLogs, encodeRecord, encodeValue, field, varint } from '@sluice/harness/otlp-logs'
import { limits } from '@sluice/schema'
import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it } from 'vitest'
import { sharedTestApi, storedRows } from '../../support/shared-api.ts'
import { decodeAnswer, embed, oneScope, postLogs, protobuf, requestOf as one } from './otlp-api.ts'

const api = sharedTestApi()

const post = (body: Buffer): Promise<LightMyRequestResponse> => api.post(body, { headers: protobuf })
const text = (value: string): Buffer => field.bytes(1, value)
const body = (value: string | Buffer): Buffer => field.bytes(5, Buffer.isBuffer(value) ? value : text(value))
const attribute = (key: string | Buffer, value: Buffer): Buffer =>
  embed(6, field.bytes(1, key), field.bytes(2, value))
const group = (number: number, ...content: readonly Buffer[]): Buffer =>
  Buffer.concat([varint(number * 8 + 3), ...content, varint(number * 8 + 4)])
/** Fields of two bytes. */
const zeros = (count: number): Buffer => Buffer.alloc(2 * count, Buffer.from([0x08, 0]))
/** A value in this number of arrays. */
const nested = (levels: number): Buffer => {
  let value = text('x')
  for (let level = 0; level < levels; level += 1) value = field.bytes(5, field.bytes(1, value))
  return value
}
const overlong = (value: number, bytes: number): Buffer =>
  Buffer.from([...Array.from({ length: bytes - 1 }, (_, i) => ((value >> (7 * i)) & 0x7f) | 0x80), 0])

const invalid = Buffer.from([0x61, 0xff])
const invalidText = field.bytes(1, invalid)

/** Requests that no message has. */
const malformed: readonly (readonly [what: string, body: Buffer])[] = [
  ['a length of 2^64 - 1', Buffer.concat([Buffer.from([0x0a]), varint(-1)])],
  ['a varint of eleven bytes', Buffer.concat([Buffer.from([0x10]), overlong(1, 11)])],
  ['the field number 0', Buffer.from([0x02, 0])],
  ['the wire type 6', Buffer.from([0x0e, 0])],
  ['a group without an end', Buffer.from([0x1b])],
  ['a group with another end', Buffer.from([0x1b, 0x24])],
  ['101 groups', Buffer.concat([Buffer.alloc(101, 0x1b), Buffer.alloc(101, 0x1c)])],
  ['a body that is not UTF-8', one(body(invalidText))],
  ['a value that is not UTF-8', one(attribute('k', invalidText))],
  ['a severity text that is not UTF-8', one(field.bytes(3, invalid))],
  ['a fixed64 of seven bytes', Buffer.from([0x11, 1, 2, 3, 4, 5, 6, 7])],
  ['a record that ends within a field', one(body('m'), Buffer.from([0x09, 1]))],
  ['a scope that ends within a field', field.bytes(1, field.bytes(2, field.bytes(1, Buffer.from([0x0a]))))],
]

it.each(malformed)('a malformed request is rejected: %s', async (_what, bytes) => {
  const response = await post(bytes)
  expect(response.statusCode).toBe(400)
  const answer = decodeAnswer(400, response.rawPayload) as { code: number; message: string }
  expect(answer.code).toBe(3)
  expect(answer.message).toMatch(/^invalid_protobuf: .{10,200}$/)
  expect(api.queue.adds).toEqual([])
})

const m = { message: 'm' }
const ofAttributes = (attributes: object): object => ({ metadata: { attributes } })
const ofK = (k: unknown): object => ofAttributes({ k })
const ofObject = (object: { a: 1 } | { b: 2 }): Buffer => field.bytes(2, encodeValue(object))
/** In ScopeLogs. */
const oneRecord = field.bytes(2, encodeRecord({ body: 'm' }))
/** Requests that official decoders read, and a part of the row that they have to become. */
const unusual: readonly (readonly [what: string, body: Buffer, rows: readonly object[]])[] = [
  ['no bytes', Buffer.alloc(0), []],
  ['an empty record', one(), [{ message: '', level: 'log' }]],
  ['unknown fields', one(field.bytes(99, 'x'), field.varint(4, 1), body('m'), field.fixed64(77, 1n)), [m]],
  ['groups', one(group(3, field.bytes(1, 'x'), group(4)), body('m')), [m]],
  ['a group of 40,000 fields', one(group(3, zeros(40_000)), body('m')), [m]],
  ['2 MiB of unknown fields', one(field.bytes(99, Buffer.alloc(2 * 1024 * 1024)), body('m')), [m]],
  [
    'known fields with other types',
    one(field.varint(1, 7), field.fixed32(2, 9), field.varint(5, 1), field.fixed64(6, 1n), body('m')),
    [{ ...m, level: 'log' }],
  ],
  ['a packed severity', one(field.bytes(2, Buffer.from([17, 9])), body('m')), [{ ...m, level: 'log' }]],
  [
    'repeated scalars',
    one(field.varint(2, 9), field.varint(2, 17), body('a'), body('m')),
    [{ ...m, level: 'error' }],
  ],
  [
    'repeated lists, which are merged',
    one(body(encodeValue(['a'])), body(encodeValue(['b', { c: 1 }]))),
    [{ message: '["a","b",{"c":1}]' }],
  ],
  [
    'repeated attributes: the last one counts',
    one(attribute('k', encodeValue({ a: 1, b: 2 })), attribute('k', encodeValue({ b: 3 }))),
    [ofK({ b: 3 })],
  ],
  [
    'a repeated value in an attribute, which is merged',
    one(embed(6, field.bytes(1, 'k'), ofObject({ a: 1 }), ofObject({ b: 2 }))),
    [ofK({ a: 1, b: 2 })],
  ],
  [
    'a value of several types: the last one counts',
    one(body(Buffer.concat([encodeValue({ a: 1 }), encodeValue(2n ** 60n), text('m')]))),
    [m],
  ],
  ['an overlong varint', one(Buffer.from([0x10]), overlong(17, 10), body('m')), [{ ...m, level: 'error' }]],
  ['an overlong length', one(Buffer.concat([Buffer.from([0x2a]), overlong(3, 5), text('m')])), [m]],
  ['an overlong tag', one(Buffer.concat([Buffer.from([0xaa, 0x80, 0x00, 3]), text('m')])), [m]],
  ['a severity of 64 bits', one(field.varint(2, 2n ** 63n + 9n), body('m')), [{ ...m, level: 'info' }]],
  [
    'a resource and a scope after their records',
    embed(
      1,
      embed(2, oneRecord, embed(1, field.bytes(1, 'late'))),
      embed(1, embed(1, field.bytes(1, 'service.name'), field.bytes(2, text('s')))),
    ),
    [{ ...m, service: 's', metadata: { scope: { name: 'late' } } }],
  ],
  ['an attribute without a key', one(field.bytes(6, field.bytes(2, text('v')))), [ofAttributes({ '': 'v' })]],
  ['an attribute without a value', one(field.bytes(6, field.bytes(1, 'k'))), [ofK(null)]],
  ['an id of another length', one(field.bytes(9, Buffer.from([1, 2]))), [{ metadata: { trace_id: '0102' } }]],
  ['14 levels in an attribute', one(attribute('k', nested(14))), [ofK(expect.any(Array))]],
]

it.each(unusual)('an unusual request is read as by official decoders: %s', async (_what, bytes, rows) => {
  const response = await post(bytes)
  expect(decodeAnswer(response.statusCode, response.rawPayload)).toEqual({})
  expect(storedRows(api)).toMatchObject(rows)
})

const tooMany = field.bytes(5, Buffer.alloc(80_000, Buffer.from([0x0a, 0])))
/** Records that are repaired, and the codes of the reasons. */
const repaired: readonly (readonly [what: string, record: Buffer, code: string])[] = [
  ['15 levels in an attribute', attribute('k', nested(15)), 'too_deep'],
  ['10,000 levels in the body', body(nested(10_000)), 'too_deep'],
  ['a message that is too long', body('a'.repeat(limits.messageCharactersMax + 1)), 'too_long'],
  ['attributes that are too large', attribute('k', text('a'.repeat(limits.metadataBytesMax))), 'too_large'],
  ['too many values', attribute('k', tooMany), 'too_large'],
  [
    'a long stack',
    attribute('exception.stacktrace', text('a'.repeat(limits.stackCharactersMax + 1))),
    'too_long',
  ],
]

describe('a record above a limit', () => {
  it.each(repaired)('is repaired without affecting the others: %s', async (_what, record, code) => {
    const records = [encodeRecord({ body: 'a' }), record, encodeRecord({ body: 'b' })]
    const response = await post(embed(1, embed(2, ...records.map((bytes) => field.bytes(2, bytes)))))
    expect(decodeAnswer(response.statusCode, response.rawPayload)).toEqual({})
    expect(storedRows(api)).toMatchObject([
      { message: 'a' },
      { metadata: { sluiceRepaired: [code] } },
      { message: 'b' },
    ])
  })

  it.each<[what: string, withAttribute: (attribute: Buffer) => Buffer]>([
    ['resource', (bytes) => embed(1, embed(1, field.bytes(1, bytes)), embed(2, oneRecord))],
    ['scope', (bytes) => embed(1, embed(2, embed(1, field.bytes(3, bytes)), oneRecord))],
  ])('is each record of a %s above it', async (_what, withAttribute) => {
    for (const value of [nested(20), tooMany]) {
      const logs = withAttribute(Buffer.concat([field.bytes(1, 'k'), field.bytes(2, value)]))
      const response = await post(Buffer.concat([logs, one(body('valid'))]))
      expect(decodeAnswer(response.statusCode, response.rawPayload)).toEqual({})
    }
    const marks = storedRows(api).map(
      ({ metadata }) => (metadata as { sluiceRepaired?: unknown } | undefined)?.sluiceRepaired,
    )
    expect(marks).toEqual([['too_deep'], undefined, ['too_large'], undefined])
  })
})

it('a request has a limit of records', async () => {
  const records = Array.from({ length: limits.recordsPerRequestMax }, () => ({}))
  expect((await postLogs(api, oneScope(...records))).statusCode).toBe(200)
  api.queue.adds.length = 0
  const response = await postLogs(api, oneScope(...records, {}))
  const message = expect.stringMatching(/^too_many_entries: /) as unknown
  expect(decodeAnswer(response.statusCode, response.rawPayload)).toMatchObject({ message })
  expect(api.queue.adds).toEqual([])
})

it('a request has a limit of the bytes of its rows, which repeat its resource', async () => {
  const resource = { attributes: { large: 'a'.repeat(60_000) } }
  const send = (count: number): Promise<LightMyRequestResponse> =>
    postLogs(api, [{ resource, scopeLogs: [{ logRecords: Array.from({ length: count }, () => ({})) }] }])
  expect((await send(500)).statusCode).toBe(200)
  api.queue.adds.length = 0
  const response = await send(600)
  expect(response.statusCode).toBe(413)
  const message = expect.stringMatching(/^body_too_large: The rows /) as unknown
  expect(decodeAnswer(413, response.rawPayload)).toMatchObject({ message })
  expect(api.queue.adds).toEqual([])
})

it('a request that is cut off anywhere is rejected', async () => {
  const logRecords = [
    { timeUnixNano: 1n, severityNumber: 9, severityText: 'i', body: 'm', attributes: { d: 0.5, i: -1 } },
    { body: { a: ['é'] }, flags: 1, traceId: 'aa'.repeat(16), spanId: 'bb'.repeat(8), eventName: 'e' },
  ]
  const resource = { attributes: { 'service.name': 's', list: [1, { a: null }] } }
  const scope = { name: 'n', version: '1', attributes: { b: true } }
  const sound = encodeLogs([{ resource, schemaUrl: 'u', scopeLogs: [{ scope, logRecords }] }])
  expect((await post(sound)).statusCode).toBe(200)
  for (let end = 1; end < sound.length; end += 1)
    expect((await post(sound.subarray(0, end))).statusCode).toBe(400)
})
