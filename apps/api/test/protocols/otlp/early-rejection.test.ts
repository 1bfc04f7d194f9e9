import { encodeLogs, encodeValue, field } from '@sluice/harness/otlp-logs'
import { limits } from '@sluice/schema'
import { describe, expect, it, vi } from 'vitest'
import {
  entryOf,
  type Origin,
  originOf,
  originOfResource,
} from '../../../src/protocols/otlp/entry-of-record.ts'
import { OtlpJsonFinder } from '../../../src/protocols/otlp/json-finder.ts'
import {
  emptyRecord,
  emptyResource,
  emptyScope,
  RecordError,
} from '../../../src/protocols/otlp/log-record.ts'
import { ProtobufReader } from '../../../src/protocols/otlp/protobuf-reader.ts'
import { protobufRecords } from '../../../src/protocols/otlp/protobuf-records.ts'
import { readAnyValue } from '../../../src/protocols/otlp/protobuf-values.ts'
import { recordLimits, ValueBudget } from '../../../src/protocols/otlp/value-budget.ts'
import { Problem } from '../../../src/problems.ts'

/** An array in Protocol Buffers. */
function list(values: number, value: bigint | null = null): ProtobufReader {
  return new ProtobufReader(encodeValue(Array.from({ length: values }, () => value)))
}

/** The origin of a resource that has a text of this length. */
function originWith(characters: number): Origin {
  const resource = { ...emptyResource(), attributes: { k: 'a'.repeat(characters) } }
  return originOf(originOfResource(resource), emptyScope())
}

function entryWith(characters: number): unknown {
  return entryOf({ ...emptyRecord(), attributes: { a: 1 } }, originWith(characters))
}

const { bytes, varint } = field
const none = Buffer.alloc(0)
const repeat = (unit: Buffer, count: number): Buffer => Buffer.alloc(unit.length * count, unit)
/** A request with one record, and with fields of its resource and its scope. */
function read(record: Buffer, resource: Buffer = none, scope: Buffer = none): unknown[] {
  const scopeLogs = bytes(2, Buffer.concat([scope, bytes(2, record)]))
  return recordsOf(bytes(1, Buffer.concat([resource, scopeLogs])))
}
/** The records of a request, without the steps that found none. */
function recordsOf(body: Buffer): unknown[] {
  return Array.from(protobufRecords(body)).filter((step) => step !== undefined)
}
const unknown = varint(99, 1)
/** An attribute with arrays in one another. */
function nested(levels: number): Buffer {
  let value: Buffer = none
  for (let level = 0; level < levels; level += 1) value = bytes(5, bytes(1, value))
  return Buffer.concat([bytes(1, 'k'), bytes(2, value)])
}

/** Messages that repeat a field, and how many fields are around them. */
const repeated: readonly (readonly [
  what: string,
  make: (count: number) => Parameters<typeof read>,
  others: number,
])[] = [
  ['a record', (count) => [repeat(unknown, count)], 0],
  ['an attribute', (count) => [bytes(6, repeat(unknown, count))], 1],
  ['a value', (count) => [bytes(5, repeat(bytes(1, ''), count))], 1],
  ['an array', (count) => [bytes(5, bytes(5, repeat(unknown, count)))], 2],
  ['a list of members', (count) => [bytes(5, bytes(6, repeat(unknown, count)))], 2],
  ['a resource', (count) => [none, bytes(1, repeat(unknown, count))], 0],
  ['two resources', (count) => [none, repeat(bytes(1, repeat(unknown, count / 2)), 2)], 0],
  ['a scope', (count) => [none, none, bytes(1, repeat(unknown, count))], 0],
]

describe('a repeated field', () => {
  it.each(repeated)('is counted: in %s', (_what, make, others) => {
    const max = recordLimits.partsMax - others
    expect(read(...make(max))).toMatchObject([{ entry: {} }])
    const message = `must have at most ${recordLimits.partsMax} fields`
    expect(read(...make(max + 2))).toMatchObject([{ error: { code: 'too_large', message } }])
  })

  it('has its bytes counted, also in a resource and in a schema URL', () => {
    const half = recordLimits.bytesMax / 2
    const tooLarge = [{ error: { code: 'too_large', message: 'must have at most 1048576 bytes' } }]
    const unread = (length: number): Buffer => bytes(1, bytes(99, Buffer.alloc(length)))
    expect(read(none, repeat(unread(half - 10), 2))).toMatchObject([{ entry: {} }])
    expect(read(none, repeat(unread(half), 2))).toMatchObject(tooLarge)
    expect(read(none, none, repeat(unread(half), 2))).toMatchObject(tooLarge)
    expect(read(none, bytes(3, Buffer.alloc(2 * half + 1)))).toMatchObject(tooLarge)
    expect(read(none, none, bytes(3, Buffer.alloc(2 * half + 1)))).toMatchObject(tooLarge)
  })

  it('does not reject the largest metadata', () => {
    const count = (limits.metadataBytesMax - '{"attributes":{"a":[]}}'.length) / 2
    const logRecords = [{ attributes: { a: Array.from({ length: count }, () => 1) } }]
    expect(recordsOf(encodeLogs([{ scopeLogs: [{ logRecords }] }]))).toMatchObject([{ entry: {} }])
  })
})

describe('what would be rejected later, after more work, is rejected', () => {
  it('while its values are decoded', () => {
    // An element takes two bytes.
    const valuesMax = recordLimits.valueBytesMax / 2
    expect(readAnyValue(list(valuesMax), null, 2, new ValueBudget())).toHaveLength(valuesMax)
    expect(() => readAnyValue(list(valuesMax + 1), null, 2, new ValueBudget())).toThrow(RecordError)
  })

  it('while its names are decoded', () => {
    const members = Object.fromEntries(Array.from({ length: 7_000 }, (_, i) => [`name${i + 1_000}`, null]))
    const reader = new ProtobufReader(encodeValue(members))
    expect(() => readAnyValue(reader, null, 2, new ValueBudget())).toThrow(RecordError)
  })

  it('while its integers beyond 2^53 are decoded', () => {
    const long = 2n ** 63n - 1n
    const max = Math.floor(recordLimits.valueBytesMax / 17)
    expect(readAnyValue(list(max, long), null, 2, new ValueBudget())).toHaveLength(max)
    expect(() => readAnyValue(list(max + 1, long), null, 2, new ValueBudget())).toThrow(RecordError)
  })

  it('with its resource or its scope', () => {
    const frame = '{"resource":{"k":""}}'.length
    const large = (key: string, length: number): Buffer =>
      Buffer.concat([bytes(1, key), bytes(2, bytes(1, 'a'.repeat(length)))])
    const resourceOf = (length: number): Buffer => bytes(1, bytes(1, large('k', length)))
    const max = limits.metadataBytesMax - frame
    expect(read(none, resourceOf(max))).toMatchObject([{ entry: {} }])
    expect(read(none, resourceOf(max + 1))).toMatchObject([{ error: { path: '/metadata' } }])
    const scope = bytes(1, bytes(1, 'n'))
    const comma = ',"scope":{"name":"n"}'.length
    expect(read(none, resourceOf(max - comma), scope)).toMatchObject([{ entry: {} }])
    expect(read(none, resourceOf(max - comma + 1), scope)).toMatchObject([{ error: { path: '/metadata' } }])
  })

  it.each([
    ['its resource', (attribute: Buffer) => read(none, bytes(1, bytes(1, attribute)))],
    ['its scope', (attribute: Buffer) => read(none, none, bytes(1, bytes(3, attribute)))],
  ])('once for all records, with too many levels in %s', (what, readWith) => {
    const max = limits.metadataDepthMax - (what === 'its resource' ? 2 : 3)
    expect(readWith(nested(max))).toMatchObject([{ entry: {} }])
    expect(readWith(nested(max + 1))).toEqual([
      { error: { path: '/metadata', code: 'too_deep', message: 'must have at most 16 levels' } },
    ])
  })

  it.each([
    ['a resource', (head: Buffer) => read(none, head)],
    ['a scope', (head: Buffer) => read(none, none, head)],
  ])('without reading the rest of it: %s', (_what, readWith) => {
    const takeField = vi.spyOn(ValueBudget.prototype, 'takeField')
    const first = bytes(1, repeat(unknown, recordLimits.partsMax + 1))
    expect(readWith(first)).toMatchObject([{ error: { code: 'too_large' } }])
    const fields = takeField.mock.calls.length
    takeField.mockClear()
    expect(readWith(Buffer.concat([first, repeat(bytes(1, unknown), 1_000)]))).toMatchObject([
      { error: { code: 'too_large' } },
    ])
    expect(takeField).toHaveBeenCalledTimes(fields)
    takeField.mockRestore()
  })

  it('before it is written for each scope', () => {
    const max = 16 * 1024 - '"resource":{"k":""}'.length
    expect(originWith(max)).toMatchObject({ text: {} })
    expect(originWith(max + 1)).toMatchObject({ text: undefined })
  })

  it('before its metadata is written, exactly at the limit', () => {
    const frame = '{"attributes":{"a":1},"resource":{"k":""}}'.length
    expect(() => entryWith(limits.metadataBytesMax - frame)).not.toThrow()
    expect(() => entryWith(limits.metadataBytesMax - frame + 1)).toThrow(RecordError)
  })

  it('while records are found in JSON', () => {
    const records = '{},'.repeat(limits.recordsPerRequestMax * 4)
    const body = Buffer.from(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[${records}{}]}]}]}`)
    const finder = new OtlpJsonFinder(body)
    const half = body.length / 2
    expect(() => finder.step(half)).toThrow(Problem)
  })
})
