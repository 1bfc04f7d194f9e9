import {
  encodeLogs,
  encodeRecord,
  field,
  type OtlpLogRecord,
  type OtlpResourceLogs,
} from '@sluice/harness/otlp-logs'
import { RowScanner } from '@sluice/row-scanner'
import { makeRowPrefix } from '@sluice/rows'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Intake } from '../../../src/intake/intake.ts'
import { readProtobuf } from '../../../src/protocols/otlp/otlp.ts'
import { protobufRecords } from '../../../src/protocols/otlp/protobuf-records.ts'
import { Problem } from '../../../src/problems.ts'
import { Turns } from '../../../src/turns.ts'
import { noScanner, sameId, stamp, textOf, validator } from '../../support/intake.ts'
import { anyLogs, anyRecord } from './any-logs.ts'
import { embed, oneScope, requestOf } from './otlp-api.ts'
import { overlong } from './overlong.ts'

const prefix = makeRowPrefix(stamp)
const scanner = new RowScanner(sameId)
const fast = new Intake(validator, sameId, scanner)
const slow = new Intake(validator, sameId, noScanner)

/** What an intake makes of a body: the rows and the rejected records, or the problem. */
async function read(intake: Intake, body: Buffer): Promise<object> {
  try {
    const { pieces, records, rejected } = await intake.readRecords(
      readProtobuf(body).records,
      body,
      stamp,
      () => {},
    )
    return { records, rejected: [...rejected], rows: pieces.map(({ rows }) => textOf(rows)).join('') }
  } catch (error) {
    if (error instanceof Problem) return { problem: error.message }
    throw error
  }
}

/** The number of records that were scanned, and of those that were decoded. */
function count(body: Buffer): { scanned: number; decoded: number } {
  const counts = { scanned: 0, decoded: 0 }
  const items = protobufRecords(body, (scopeLogs, at, origin) =>
    scanner.scanRecords(scopeLogs, at, origin, prefix),
  )
  for (const item of items) {
    if (item === undefined) continue
    if ('rows' in item) counts.scanned += item.rows.count
    else counts.decoded += 1
  }
  return counts
}

const ordinary: OtlpLogRecord = {
  timeUnixNano: 1_795_214_581_123_456_789n,
  observedTimeUnixNano: 1_795_214_581_123_456_999n,
  severityNumber: 9,
  severityText: 'INFO',
  body: 'GET /cart "é"\n',
  attributes: { 'http.method': 'GET', ok: true, ms: 1.25, whole: -3, none: null, tags: ['a', { b: [] }] },
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  eventName: 'request',
}

/** The number of bytes that a number or a length has more than it needs. */
const more = fc.infiniteStream(fc.constantFrom(0, 0, 0, 1, 2, 9))
const anyOverlong = fc
  .tuple(anyLogs, more)
  .map(([logs, lengths]) => overlong(encodeLogs(logs), () => lengths.next().value ?? 0))
/** Official decoders merge the two. */
const anyRepeated = fc
  .tuple(anyRecord, anyRecord)
  .map(([first, second]) => requestOf(encodeRecord(first), encodeRecord(second)))

const anyChanges = fc.array(fc.record({ at: fc.nat(), byte: fc.nat({ max: 255 }) }), { maxLength: 3 })

describe('the scanner of records', () => {
  it.each([
    ['ordinary', anyLogs.map((logs) => encodeLogs(logs)), 600],
    ['with numbers and lengths that have more bytes than they need', anyOverlong, 300],
    ['with records that have all their fields twice', anyRepeated, 300],
  ])(
    'makes the rows of the decoder, also of changed bytes, of a body %s',
    async (_what, anyBody, numRuns) => {
      await fc.assert(
        fc.asyncProperty(anyBody, anyChanges, async (body, changes) => {
          expect(await read(fast, body)).toEqual(await read(slow, body))
          const changed = Buffer.from(body)
          for (const { at, byte } of changes) if (body.length > 0) changed[at % body.length] = byte
          expect(await read(fast, changed)).toEqual(await read(slow, changed))
        }),
        { numRuns },
      )
    },
  )

  it('keeps an empty text in the attribute of a column, however long its length is', async () => {
    for (const name of ['exception.stacktrace', 'url.full', 'url.path']) {
      for (const length of [[0], [0x80, 0], [...Array<number>(9).fill(0x80), 0]]) {
        const value = field.bytes(2, Buffer.from([0x0a, ...length]))
        const body = requestOf(field.varint(2, 9), embed(6, field.bytes(1, name), value))
        const rows = expect.stringContaining(`{"attributes":{"${name}":""}}`) as string
        for (const intake of [slow, fast]) expect(await read(intake, body)).toMatchObject({ rows })
      }
    }
  })

  it.each([
    ['its severity', 3],
    ['the name of its event', 12],
  ])('rejects a body if a record has %s twice, and the first is not UTF-8', async (_what, number) => {
    const texts = [field.bytes(number, Buffer.of(0xff)), field.bytes(number, 'a')]
    const problem = 'The body is not an ExportLogsServiceRequest: a text is not UTF-8, at byte 5.'
    for (const intake of [slow, fast])
      expect(await read(intake, requestOf(field.varint(2, 9), ...texts))).toEqual({ problem })
  })

  const many = (...others: OtlpLogRecord[]): OtlpLogRecord[] => [
    ...Array.from({ length: 150 }, () => ordinary),
    ...others,
    ordinary,
  ]
  const large = (size: number): OtlpResourceLogs[] =>
    oneScope(...many({ ...ordinary, body: 'x'.repeat(size) }))
  const ofMany = Array.from({ length: 50 }, (_, i) => ({
    resource: { attributes: { 'service.name': `s${i}` } },
    scopeLogs: [
      { logRecords: [ordinary] },
      { scope: { name: 'http', version: '1' }, logRecords: [ordinary, {}] },
    ],
  }))

  it.each<[what: string, logs: OtlpResourceLogs[], scanned: number, decoded: number]>([
    ['a large message', large(20_000), 152, 0],
    ['many resources and scopes', ofMany, 150, 0],
    ['one record for the decoder among others', oneScope(ordinary, { body: { a: 1 } }, ordinary), 2, 1],
    // Whole groups of records are decoded.
    ['a message that is too large for a row', large(65_537), 100, 52],
    ['a name with a quote', oneScope(...many({ attributes: { 'a"': 'a' } })), 100, 52],
  ])('reads as many records as it can of a body with %s', async (_what, logs, scanned, decoded) => {
    const body = encodeLogs(logs)
    expect(count(body)).toEqual({ scanned, decoded })
    expect(await read(fast, body)).toEqual(await read(slow, body))
  })
})

async function piecesWith(body: Buffer, turns: Turns): Promise<string[]> {
  const intake = new Intake(validator, sameId, new RowScanner(sameId), turns)
  const { pieces } = await intake.readRecords(readProtobuf(body).records, body, stamp, () => {})
  return pieces.map(({ start, end, rows }) => `${start}-${end}: ${textOf(rows)}`)
}

// A28: each piece has an idempotency record of its own, so a request must have the same pieces when it is sent again.
it('the pieces of a request are the same if other requests are read at the same time', async () => {
  const bodies = [9_000, 5_000, 4_000].map((length, k) => {
    const text = (i: number): string => `request ${i} ${'x'.repeat(120 + ((i + k) % 37))}`
    return encodeLogs(
      oneScope(...Array.from({ length }, (_, i) => ({ body: i % 700 === 699 ? 1 : text(i) }))),
    )
  })
  // While the clock stands still, a request is read in one step. When each look at it is 5 ms later, each step is a slice of its own.
  const undisturbed: string[][] = []
  for (const body of bodies) undisturbed.push(await piecesWith(body, new Turns(undefined, () => 0)))
  let nowMs = 0
  const turns = new Turns(undefined, () => (nowMs += 5))
  expect(undisturbed[0]?.length).toBeGreaterThan(2)
  expect(await Promise.all(bodies.map((body) => piecesWith(body, turns)))).toEqual(undisturbed)
})
