import { field } from '@sluice/harness/otlp-logs'
import { describe, expect, it, vi } from 'vitest'
import type { SourceRecord } from '../../../src/intake/records.ts'
import { pushedJson } from '../../../src/protocols/loki/push.ts'
import { pushedProtobuf } from '../../../src/protocols/loki/push-protobuf.ts'
import { embed } from '../otlp/otlp-api.ts'

const labels = field.bytes(1, '{app="x"}')
const repeat = (bytes: Buffer, count: number): Buffer => Buffer.alloc(bytes.length * count, bytes)
const inStream = (...fields: readonly Buffer[]): Buffer => embed(1, ...fields)
const lineOf = (...fields: readonly Buffer[]): Buffer => embed(2, ...fields)

/** The steps of a request with one line, without those that found nothing. */
function readLine(...fields: readonly Buffer[]): SourceRecord[] {
  const steps = Array.from(pushedProtobuf(inStream(labels, lineOf(...fields))))
  return steps.filter((step) => step !== undefined)
}

describe('a push request in Protocol Buffers', () => {
  it('is read in a step for the labels of each stream, for each line, and for two groups', () => {
    const body = repeat(inStream(labels, lineOf(field.bytes(2, 'x'))), 3)
    const isRecord = Array.from(pushedProtobuf(body), (step) => step !== undefined)
    expect(isRecord).toEqual([false, true, false, true, false, true])
    const fields = repeat(field.varint(9, 1), 16_384)
    const groups = repeat(Buffer.concat([Buffer.from([0x7b]), fields, Buffer.from([0x7c])]), 100)
    expect(Array.from(pushedProtobuf(groups)).length).toBeGreaterThanOrEqual(49)
    // The fields of a stream are passed twice: for the labels, and for the lines.
    expect(Array.from(pushedProtobuf(inStream(groups, lineOf()))).length).toBeGreaterThanOrEqual(98)
  })

  it.each<[what: string, unit: Buffer, max: number]>([
    ['unknown fields', field.varint(9, 1), 1_152],
    ['fields of a time', field.bytes(1, repeat(field.varint(1, 7), 99)), 11],
    ['fields of structured metadata', field.bytes(3, repeat(field.bytes(1, ''), 99)), 11],
  ])('may have 1,152 fields in a line: %s', (_what, unit, max) => {
    expect(readLine(repeat(unit, max))).toMatchObject([{ entry: {} }])
    expect(readLine(repeat(unit, max + 1))).toMatchObject([
      { error: { code: 'too_large', message: 'must have at most 1152 fields' } },
    ])
  })
})

it('a push request in JSON has its labels parsed once, also if they are repeated', () => {
  const parse = vi.spyOn(JSON, 'parse')
  const repeated = '"stream":{"a":"first"},'.repeat(1_000)
  const body = `{"streams":[{${repeated}"stream":{"a":"last"},"values":[["0","x"]],"stream":{"a":"after"}}]}`
  const records = Array.from(pushedJson(Buffer.from(body))).filter((step) => step !== undefined)
  expect(records).toMatchObject([{ entry: { metadata: { a: 'after' } } }])
  expect(parse).toHaveBeenCalledTimes(2)
})
