import { encodeValue } from '@sluice/harness/otlp-logs'
import { limits } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { entryOf, originOf, originOfResource } from '../../../src/protocols/otlp/entry-of-record.ts'
import { OtlpJsonFinder } from '../../../src/protocols/otlp/json-finder.ts'
import { emptyRecord, emptyResource, emptyScope } from '../../../src/protocols/otlp/log-record.ts'
import { ProtobufReader } from '../../../src/protocols/otlp/protobuf-reader.ts'
import { readAnyValue } from '../../../src/protocols/otlp/protobuf-values.ts'
import { RecordError } from '../../../src/protocols/otlp/record-error.ts'
import { recordLimits, ValueBudget } from '../../../src/protocols/otlp/value-budget.ts'
import { Problem } from '../../../src/problems.ts'

/** An array in Protocol Buffers. */
function list(values: number): ProtobufReader {
  return new ProtobufReader(encodeValue(Array.from({ length: values }, () => null)))
}

/** An entry whose resource has a text of this length. */
function entryWith(characters: number): unknown {
  const resource = { ...emptyResource(), attributes: { k: 'a'.repeat(characters) } }
  const origin = originOf(originOfResource(resource), emptyScope())
  return entryOf({ ...emptyRecord(), attributes: { a: 1 } }, origin)
}

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
