import { Double, encodeLogs, type OtlpValue } from '@sluice/harness/otlp-logs'
import { textPrefix, textOfBlocks } from '@sluice/rows/testing'
import { runsOf } from '@sluice/harness'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { RejectedBody, type ScannedRecords, Scanner } from '../src/index.ts'
import { anyLogs } from './support/any-logs.ts'
import { Fault, type OtlpOutcome } from './support/otlp.ts'
import { anyJsonLogs } from './support/otlp-json-bodies.ts'
import { referenceOfJson } from './support/otlp-json.ts'
import { anyProtobufLogs } from './support/otlp-protobuf-bodies.ts'
import { referenceOfProtobuf } from './support/otlp-protobuf.ts'
import { descending, rearrange } from '@sluice/harness/rearrange'
import { ID, stamp, withOneId } from './support/reference.ts'

const scanner = new Scanner({ reserve: () => ID }, Date.now, { rowsMax: 2_000, bytesMax: 1_000_000 })
const prefix = textPrefix(stamp)

/** What came of a body, or why it is rejected. Of a fault in Protocol Buffers, not its place. */
function outcomeOf(read: () => OtlpOutcome | ScannedRecords): unknown {
  try {
    const outcome = read()
    if (!('pieces' in outcome)) return outcome
    const { records, rejected, pieces } = outcome
    const rows = pieces.map((piece) => {
      const text = Buffer.alloc(piece.rows.byteLength)
      piece.rows.copyTo(text, 0)
      return textOfBlocks(text)
    })
    return { records, rows: withOneId(rows.join('')), errors: Object.fromEntries(rejected) }
  } catch (error) {
    if (error instanceof RejectedBody || error instanceof Fault)
      return error.message.replace(/, at byte \d+$/, '')
    throw error
  }
}

it('gives the same rows, errors and faults as the reference for Protocol Buffers in any order, changed or not', () => {
  const change = fc.record({
    at: fc.double({ min: 0, max: 0.9999, noNaN: true }),
    cut: fc.nat({ max: 2 }),
    put: fc.array(fc.oneof(fc.constantFrom(0, 1, 2, 3, 10, 18, 26, 42, 50), fc.nat({ max: 255 })), {
      maxLength: 2,
    }),
  })
  fc.assert(
    fc.property(anyProtobufLogs, fc.option(fc.array(change, { maxLength: 3 })), (body, changes) => {
      let bytes = body
      for (const { at, cut, put } of changes ?? []) {
        const from = Math.floor(at * bytes.length)
        bytes = Buffer.concat([bytes.subarray(0, from), Buffer.from(put), bytes.subarray(from + cut)])
      }
      expect(outcomeOf(() => scanner.scanRecords('Otlp', bytes, prefix))).toEqual(
        outcomeOf(() => referenceOfProtobuf(bytes)),
      )
    }),
    runsOf(300),
  )
})

it('gives the same rows, errors and faults as the reference for JSON, with parts of a wrong type or not', () => {
  fc.assert(
    fc.property(anyJsonLogs, (text) => {
      const body = Buffer.from(text)
      expect(outcomeOf(() => scanner.scanOtlpJson(body, prefix))).toEqual(
        outcomeOf(() => referenceOfJson(body)),
      )
    }),
    runsOf(250),
  )
})

const rows = (bytes: Buffer): number =>
  scanner.scanRecords('Otlp', bytes, prefix).pieces.reduce((sum, piece) => sum + piece.rows.count, 0)

it('gives the same rows for fields from the first to the last and from the last to the first', () => {
  const body = encodeLogs(fc.sample(anyLogs, { numRuns: 20, seed: 7 }).flat())
  expect(rows(body)).toBeGreaterThan(10)
  expect(rows(rearrange(body, descending))).toBe(rows(body))
})
it.each([16, 17, 97, 98, 99, 100, 101, 102])(
  'treats %i levels of a value as the reference does',
  (levels) => {
    let value: OtlpValue = 'x'
    for (let level = 0; level < levels; level += 1) value = [value]
    const body = encodeLogs([{ scopeLogs: [{ logRecords: [{ body: 'm', attributes: { a: value } }] }] }])
    const outcome = outcomeOf(() => scanner.scanRecords('Otlp', body, prefix))
    expect(outcome).toEqual(outcomeOf(() => referenceOfProtobuf(body)))
    expect(outcome).toMatchObject({ records: 1 })
  },
)

it('bytes and a double that is not finite become texts, but no columns', () => {
  const attributes = { 'url.full': Buffer.of(173, 101), 'url.path': new Double(-Infinity) }
  const body = encodeLogs([
    {
      scopeLogs: [
        {
          logRecords: [
            { body: Buffer.of(1), attributes },
            { body: Buffer.of(), eventName: 'e' },
          ],
        },
      ],
    },
  ])
  const outcome = outcomeOf(() => scanner.scanRecords('Otlp', body, prefix))
  expect(outcome).toEqual(outcomeOf(() => referenceOfProtobuf(body)))
  expect(outcome).toMatchObject({ rows: expect.stringContaining('"url.full":"rWU=","url.path":"-Infinity"') })
})
