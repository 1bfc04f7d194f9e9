import { afterEach, describe, expect, it, vi } from 'vitest'
import type { SourceRecord } from '../../../src/intake/records.ts'
import { partLimits } from '../../../src/protocols/otlp/json-parts.ts'
import { jsonRecords } from '../../../src/protocols/otlp/json-records.ts'
import { recordLimits } from '../../../src/protocols/otlp/value-budget.ts'

/** The steps of a request with one record. */
function stepsOf(record: string, resource = '{}', scope = '{}'): (SourceRecord | undefined)[] {
  const scopeLogs = `[{"scope":${scope},"logRecords":[${record}]}]`
  return Array.from(
    jsonRecords(Buffer.from(`{"resourceLogs":[{"resource":${resource},"scopeLogs":${scopeLogs}}]}`)),
  )
}
const recordsOf = (...parts: Parameters<typeof stepsOf>): SourceRecord[] =>
  stepsOf(...parts).filter((step) => step !== undefined)

const list = (value: string, count: number): string =>
  `[${Array.from({ length: count }, () => value).join()}]`
const members = (count: number): string =>
  `{${Array.from({ length: count }, (_, i) => `"name-${i}":0`).join()}}`
/** A record of this many bytes. */
const recordOf = (bytes: number): string => `{"x":"${'x'.repeat(bytes - '{"x":""}'.length)}"}`
/** A record with one attribute: an array. */
const withArray = (element: string, count: number): string =>
  `{"attributes":[{"key":"a","value":{"arrayValue":{"values":${list(element, count)}}}}]}`
const digits = (count: number): string => withArray('{"intValue":1}', count)

afterEach(() => {
  vi.restoreAllMocks()
})

describe('a large value of OTLP in JSON', () => {
  it('may have as many values as the largest metadata', () => {
    const count = (65_536 - '{"attributes":{"a":[]}}'.length) / 2
    expect(recordsOf(digits(count))).toMatchObject([{ entry: {} }])
  })

  it.each([
    ['values', (count: number) => `{"x":${list('0', count - 2)}}`, recordLimits.partsMax, 'too_large'],
    ['unknown names', members, partLimits.unknownNamesMax, 'too_many_names'],
  ])('has a bounded number of %s', (_what, make, max, code) => {
    expect(recordsOf(make(max))).toMatchObject([{ entry: {} }])
    const parse = vi.spyOn(JSON, 'parse')
    expect(recordsOf(make(max + 1))).toMatchObject([{ error: { code } }])
    expect(recordsOf('{}', make(max + 1))).toMatchObject([{ error: { code } }])
    expect(recordsOf('{}', '{}', make(max + 1))).toMatchObject([{ error: { code } }])
    const longest = Math.max(0, ...parse.mock.calls.map(([text]) => text.length))
    expect(longest).toBeLessThan(10)
  })

  it('has a bounded number of integers beyond 2^53', () => {
    const long = '{"intValue":"9223372036854775807"}'
    const max = Math.floor((recordLimits.valueBytesMax - 6) / 17)
    expect(recordsOf(withArray(long, max))).toMatchObject([{ entry: {} }])
    expect(recordsOf(withArray(long, max + 1))).toMatchObject([{ error: { code: 'too_large' } }])
  })

  it('is counted in steps', () => {
    const record = `{"x":"${'x'.repeat(900_000)}"}`
    const found = Math.floor(record.length / (64 * 1024))
    const counted = Math.floor(record.length / (32 * 1024))
    expect(stepsOf(record).length).toBeGreaterThan(found + counted)
  })

  it('is parsed, decoded and made a row in three steps', () => {
    const bytes = partLimits.uncheckedBytesMax
    // Three steps count its parts, and two are between parsing, decoding and the row.
    expect(stepsOf(recordOf(bytes + 1)).length - stepsOf(recordOf(bytes)).length).toBe(3 + 2)
  })

  it('may repeat the names of OTLP', () => {
    expect(recordsOf(digits(partLimits.unknownNamesMax + 1))).toMatchObject([{ entry: {} }])
  })
})
