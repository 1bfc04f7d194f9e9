import { encodeLogs, encodeRecord, field, type OtlpLogRecord } from '@sluice/harness/otlp-logs'
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
import { oneScope } from './otlp-api.ts'
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

/** A body with one record, in the order of its fields. */
function bodyOf(...fields: Buffer[]): Buffer {
  return field.bytes(1, field.bytes(2, field.bytes(2, Buffer.concat(fields))))
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
  attributes: {
    'http.method': 'GET',
    status: 200,
    ok: true,
    ms: 1.25,
    whole: -3,
    none: null,
    tags: ['a', { b: [] }],
  },
  droppedAttributesCount: 1,
  flags: 1,
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  eventName: 'request',
}
const resource = { attributes: { 'service.name': 'shop', 'host.name': 'web-1' } }
const scope = { name: 'http', version: '1' }

/** The number of bytes that a number or a length has more than it needs. */
const more = fc.infiniteStream(fc.constantFrom(0, 0, 0, 1, 2, 9))
const anyOverlong = fc
  .tuple(anyLogs, more)
  .map(([logs, lengths]) => overlong(encodeLogs(logs), () => lengths.next().value ?? 0))
/** Official decoders merge the two. */
const anyRepeated = fc
  .tuple(anyRecord, anyRecord)
  .map(([first, second]) => bodyOf(encodeRecord(first), encodeRecord(second)))

const anyChanges = fc.array(fc.record({ at: fc.nat(), byte: fc.nat({ max: 255 }) }), { maxLength: 3 })

describe('the scanner of records', () => {
  it.each([
    ['ordinary', anyLogs.map((logs) => encodeLogs(logs)), 600],
    ['with numbers and lengths that have more bytes than they need', anyOverlong, 300],
    ['with records that have all their fields twice', anyRepeated, 300],
  ])(
    'makes the rows of the decoder, also if bytes are changed, of a body %s',
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

  it.each(['exception.stacktrace', 'url.full', 'url.path'])(
    'keeps an empty text in the attribute of a column, however long its length is: %s',
    async (name) => {
      for (const length of [[0], [0x80, 0], [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]]) {
        const value = field.bytes(2, Buffer.from([0x0a, ...length]))
        const body = bodyOf(field.varint(2, 9), field.bytes(6, Buffer.concat([field.bytes(1, name), value])))
        const rows = await read(slow, body)
        expect(rows).toMatchObject({
          rows: expect.stringContaining(`{"attributes":{"${name}":""}}`) as string,
        })
        expect(await read(fast, body)).toEqual(rows)
      }
    },
  )

  it.each([
    ['its severity', 3],
    ['the name of its event', 12],
  ])('rejects a body if a record has %s twice, and the first is not UTF-8', async (_what, number) => {
    const body = bodyOf(field.varint(2, 9), field.bytes(number, Buffer.of(0xff)), field.bytes(number, 'a'))
    const problem = 'The body is not an ExportLogsServiceRequest: a text is not UTF-8, at byte 5.'
    expect(await read(slow, body)).toEqual({ problem })
    expect(await read(fast, body)).toEqual({ problem })
  })

  it('reads many ordinary records, also of large messages', async () => {
    for (const size of [1, 1_000, 20_000]) {
      const records = Array.from({ length: 250 }, (_, i) => ({
        ...ordinary,
        body: `${i} ${'x'.repeat(size)}`,
      }))
      const body = encodeLogs([{ resource, scopeLogs: [{ scope, logRecords: records }] }])
      const { scanned, decoded } = count(body)
      expect(scanned).toBe(250)
      expect(decoded).toBe(0)
      expect(await read(fast, body)).toEqual(await read(slow, body))
    }
  })

  it('reads the records of many resources and scopes', async () => {
    const logs = Array.from({ length: 50 }, (_, i) => ({
      resource: { attributes: { 'service.name': `s${i}` } },
      scopeLogs: [{ logRecords: [ordinary] }, { scope, logRecords: [ordinary, {}] }],
    }))
    expect(count(encodeLogs(logs))).toEqual({ scanned: 150, decoded: 0 })
    expect(await read(fast, encodeLogs(logs))).toEqual(await read(slow, encodeLogs(logs)))
  })

  it.each<[what: string, record: OtlpLogRecord]>([
    ['bytes', { body: Buffer.from('a') }],
    ['a structured body', { body: { a: 1 } }],
    ['a number as its body', { body: 1 }],
    ['an integer beyond 2^53', { attributes: { a: 2n ** 53n } }],
    ['an exponent', { attributes: { a: 1e-7 } }],
    ['a severity without a number', { severityText: 'INFO' }],
    ['an unknown severity', { severityNumber: 25 }],
    ['an id of another length', { traceId: 'ab' }],
    ['a number in the attribute of a column', { attributes: { 'url.full': 1 } }],
  ])('leaves a record to the decoder, and reads those around it: %s', async (_what, record) => {
    const body = encodeLogs(oneScope(ordinary, ordinary, record, ordinary))
    expect(count(body)).toEqual({ scanned: 3, decoded: 1 })
    expect(await read(fast, body)).toEqual(await read(slow, body))
  })

  it.each<[what: string, record: OtlpLogRecord]>([
    ['a name that is a number', { attributes: { 1: 'a' } }],
    ['a name with a quote', { attributes: { 'a"': 'a' } }],
    ['33 names', { attributes: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`n${i}`, i])) }],
    ['a long URL', { attributes: { 'url.full': 'a'.repeat(8_193) } }],
    ['a long message', { body: 'a'.repeat(65_537) }],
  ])('leaves the records next to some records to the decoder: %s', async (_what, record) => {
    const body = encodeLogs(oneScope(...Array.from({ length: 150 }, () => ordinary), record, ordinary))
    expect(count(body)).toEqual({ scanned: 100, decoded: 52 })
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
  const bodies = [9_000, 5_000, 4_000].map((length, k) =>
    encodeLogs(
      oneScope(
        ...Array.from({ length }, (_, i) => ({
          body: i % 700 === 699 ? 1 : `request ${i} ${'x'.repeat(120 + ((i + k) % 37))}`,
        })),
      ),
    ),
  )
  // While the clock stands still, a request is read in one step. When each look at it is 5 ms later, each step is a slice of its own.
  const undisturbed: string[][] = []
  for (const body of bodies) undisturbed.push(await piecesWith(body, new Turns(undefined, () => 0)))
  let nowMs = 0
  const turns = new Turns(undefined, () => (nowMs += 5))
  expect(undisturbed[0]?.length).toBeGreaterThan(2)
  expect(await Promise.all(bodies.map((body) => piecesWith(body, turns)))).toEqual(undisturbed)
})
