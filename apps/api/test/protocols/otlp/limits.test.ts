import { field } from '@sluice/harness/otlp-logs'
import { limits } from '@sluice/schema'
import { describe, expect, it, vi } from 'vitest'
import { partLimits } from '../../../src/protocols/otlp/json-parts.ts'
import { jsonRecords } from '../../../src/protocols/otlp/json-records.ts'
import { protobufRecords } from '../../../src/protocols/otlp/protobuf-records.ts'
import { recordLimits } from '../../../src/protocols/otlp/value-budget.ts'
import { embed } from './otlp-api.ts'

/** The records of a request, without the steps that found none. */
const recordsOf = (steps: Iterable<unknown>): unknown[] =>
  Array.from(steps).filter((step) => step !== undefined)
const accepted = [{ entry: {} }]
const rejectedFor = (code: string): object[] => [{ error: { code } }]

const { bytes, varint } = field
const repeat = (unit: Buffer, count: number): Buffer => Buffer.alloc(unit.length * count, unit)

const none = Buffer.alloc(0)
/** The record of a request, with fields of its resource and its scope. */
function read(record: Buffer, resource: Buffer = none, scope: Buffer = none): unknown[] {
  return recordsOf(protobufRecords(embed(1, resource, embed(2, scope, bytes(2, record)))))
}
const attribute = (characters: number): Buffer =>
  Buffer.concat([bytes(1, 'k'), bytes(2, bytes(1, 'a'.repeat(characters)))])

const resourceOf = (characters: number): Buffer => bytes(1, bytes(1, attribute(characters)))

describe('a record in Protocol Buffers', () => {
  const unknown = varint(99, 1)

  it.each<[what: string, make: (count: number) => Parameters<typeof read>, others: number]>([
    ['a record', (count) => [repeat(unknown, count)], 0],
    ['an array of its body', (count) => [bytes(5, bytes(5, repeat(unknown, count)))], 2],
    ['two resources', (count) => [none, repeat(bytes(1, repeat(unknown, count / 2)), 2)], 0],
    ['a scope', (count) => [none, none, bytes(1, repeat(unknown, count))], 0],
  ])('has a bounded number of fields, known or not: in %s', (_what, make, others) => {
    const max = recordLimits.partsMax - others
    expect(read(...make(max))).toMatchObject(accepted)
    expect(read(...make(max + 2))).toMatchObject(rejectedFor('too_large'))
  })

  it('has a bounded number of bytes, also in its resource, its scope and their schema URLs', () => {
    const half = recordLimits.bytesMax / 2
    const unread = (length: number): Buffer => bytes(1, bytes(99, Buffer.alloc(length)))
    const url = bytes(3, Buffer.alloc(2 * half + 1))
    expect(read(none, repeat(unread(half - 10), 2))).toMatchObject(accepted)
    expect(read(none, repeat(unread(half), 2))).toMatchObject(rejectedFor('too_large'))
    expect(read(none, none, repeat(unread(half), 2))).toMatchObject(rejectedFor('too_large'))
    expect(read(none, url)).toMatchObject(rejectedFor('too_large'))
    expect(read(none, none, url)).toMatchObject(rejectedFor('too_large'))
  })

  it('shares the bytes of metadata with its resource and its scope, exactly', () => {
    const max = limits.metadataBytesMax - '{"resource":{"k":""}}'.length
    const scope = bytes(1, bytes(1, 'n'))
    const scopeBytes = ',"scope":{"name":"n"}'.length
    const own = bytes(6, attribute(1))
    const ownBytes = '"attributes":{"k":"a"},'.length
    for (const [record, scopeField, room] of [
      [none, none, max],
      [none, scope, max - scopeBytes],
      [own, none, max - ownBytes],
    ] as const) {
      expect(read(record, resourceOf(room), scopeField)).toMatchObject(accepted)
      expect(read(record, resourceOf(room + 1), scopeField)).toMatchObject([{ error: { path: '/metadata' } }])
    }
  })
})

const list = (value: string, count: number): string =>
  `[${Array.from({ length: count }, () => value).join()}]`
const members = (count: number): string =>
  `{${Array.from({ length: count }, (_, i) => `"name-${i}":0`).join()}}`
/** A record with one attribute: an array. */
const withArray = (element: string, count: number): string =>
  `{"attributes":[{"key":"a","value":{"arrayValue":{"values":${list(element, count)}}}}]}`

/** The record of a request, with its resource and its scope. */
function readJson(record: string, resource = '{}', scope = '{}'): unknown[] {
  const scopeLogs = `[{"scope":${scope},"logRecords":[${record}]}]`
  return recordsOf(
    jsonRecords(Buffer.from(`{"resourceLogs":[{"resource":${resource},"scopeLogs":${scopeLogs}}]}`)),
  )
}

describe('a record in JSON', () => {
  it.each([
    ['values', (count: number) => `{"x":${list('0', count - 2)}}`, recordLimits.partsMax, 'too_large'],
    ['unknown names', members, partLimits.unknownNamesMax, 'too_many_names'],
  ])('has a bounded number of %s, and is not parsed above it', (_what, make, max, code) => {
    expect(readJson(make(max))).toMatchObject(accepted)
    const parse = vi.spyOn(JSON, 'parse')
    expect(readJson(make(max + 1))).toMatchObject(rejectedFor(code))
    expect(readJson('{}', make(max + 1))).toMatchObject(rejectedFor(code))
    expect(readJson('{}', '{}', make(max + 1))).toMatchObject(rejectedFor(code))
    expect(Math.max(0, ...parse.mock.calls.map(([text]) => text.length))).toBeLessThan(10)
  })

  it('may have the largest metadata, and a bounded number of integers beyond 2^53', () => {
    const count = (limits.metadataBytesMax - '{"attributes":{"a":[]}}'.length) / 2
    expect(readJson(withArray('{"intValue":1}', count))).toMatchObject(accepted)
    const long = '{"intValue":"9223372036854775807"}'
    const max = Math.floor((recordLimits.valueBytesMax - 6) / 17)
    expect(readJson(withArray(long, max))).toMatchObject(accepted)
    expect(readJson(withArray(long, max + 1))).toMatchObject(rejectedFor('too_large'))
  })
})
