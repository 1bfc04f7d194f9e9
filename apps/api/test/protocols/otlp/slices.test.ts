import { encodeLogs, field } from '@sluice/harness/otlp-logs'
import { EntryValidator, IdSource, type RequestStamp } from '@sluice/rows'
import { limits } from '@sluice/schema'
import { beforeEach, describe, expect, it } from 'vitest'
import { Intake } from '../../../src/intake/intake.ts'
import { readJson, readProtobuf } from '../../../src/protocols/otlp/otlp.ts'
import { Problem } from '../../../src/problems.ts'
import { Turns } from '../../../src/turns.ts'

const stamp: RequestStamp = { projectId: 'demo', retentionDays: 30, receivedAtMs: Date.UTC(2026, 10, 20) }
/** A fifth of the largest body: enough for many steps. */
const max = limits.bodyBytesMax / 5

/** Each look at the clock is a millisecond later: a slice has five steps. */
const STEPS_PER_SLICE = 5
let turns: number
let intake: Intake

beforeEach(() => {
  turns = 0
  let nowMs = 0
  const counted = new Turns(
    (turn) => {
      turns += 1
      setImmediate(turn)
    },
    () => (nowMs += 1),
  )
  intake = new Intake(new EntryValidator(), new IdSource(Date.now), undefined, counted)
})

const repeat = (bytes: Buffer, total: number): Buffer => Buffer.alloc(total - (total % bytes.length), bytes)
const message = (...fields: readonly Buffer[]): Buffer => Buffer.concat(fields)
const inScope = (...fields: readonly Buffer[]): Buffer => field.bytes(1, field.bytes(2, message(...fields)))
const record = (...fields: readonly Buffer[]): Buffer => field.bytes(2, message(...fields))
const attribute = (bytes: number): Buffer =>
  message(field.bytes(1, 'k'), field.bytes(2, field.bytes(1, 'a'.repeat(bytes))))
const large = (bytes: number): Buffer => field.bytes(1, attribute(bytes))
/** A group of the most fields. */
const group = message(Buffer.from([0x7b]), repeat(field.varint(9, 1), 2 * 16_384), Buffer.from([0x7c]))
const resource = field.bytes(1, large(60_000))
const tooLarge = field.bytes(1, large(limits.metadataBytesMax - 100))

/** Bodies of 1 MiB, and at least how many steps they take. */
const attacks: readonly (readonly [what: string, body: Buffer, stepsMin: number])[] = [
  ['empty resources', repeat(field.bytes(1, ''), max), 120],
  [
    'empty scopes of a large resource',
    field.bytes(1, message(resource, repeat(field.bytes(2, ''), max - 70_000))),
    110,
  ],
  ['unknown fields', repeat(field.varint(9, 1), max), 120],
  ['groups', repeat(group, max), 14],
  ['groups of a resource', field.bytes(1, repeat(group, max - 100)), 28],
  ['resources with groups', repeat(field.bytes(1, group), max), 28],
  ['groups of a scope', inScope(repeat(group, max - 100), record()), 28],
  ['unknown fields of a resource', field.bytes(1, repeat(field.varint(9, 1), max - 100)), 120],
  ['unknown fields of a scope', inScope(repeat(field.varint(9, 1), max - 100)), 120],
  [
    'large resources',
    message(
      ...Array.from({ length: 5 }, () =>
        field.bytes(1, message(resource, field.bytes(1, repeat(field.varint(9, 1), max / 5 - 80_000)))),
      ),
    ),
    5,
  ],
  [
    'repeated fields of records',
    inScope(...Array.from({ length: 5 }, () => record(repeat(field.varint(2, 1), max / 5 - 100)))),
    5,
  ],
  [
    'records that are too large',
    field.bytes(
      1,
      message(tooLarge, field.bytes(2, repeat(record(field.bytes(6, attribute(300))), 2_500 * 320))),
    ),
    2_300,
  ],
  [
    'scopes of a large resource',
    field.bytes(1, message(resource, repeat(field.bytes(2, record()), 6 * 400))),
    400,
  ],
]

async function read(reading: ReturnType<typeof readProtobuf>, body: Buffer): Promise<string> {
  try {
    const { records, rejected } = await intake.readRecords(reading.records, body, stamp, () => {})
    return `${records} records, ${rejected.size} rejected`
  } catch (error) {
    if (error instanceof Problem) return error.code
    throw error
  }
}

describe('a large request', () => {
  it.each(attacks)('is read in small steps: %s', async (_what, body, stepsMin) => {
    expect(body.length).toBeLessThanOrEqual(max)
    await read(readProtobuf(body), body)
    expect(turns).toBeGreaterThanOrEqual(Math.floor(stepsMin / STEPS_PER_SLICE) - 2)
  })

  it.each([
    ['empty resources', `{"resourceLogs":[${'{},'.repeat(340_000)}{}]}`],
    ['scopes without records', `{"resourceLogs":[{"scopeLogs":[${'{},'.repeat(340_000)}{}]}]}`],
    ['unknown fields', `{"resourceLogs":[],"a":[${'1,'.repeat(500_000)}1]}`],
    ['names', `{"resourceLogs":[{${'"a":1,'.repeat(170_000)}"b":1}]}`],
  ])('in JSON is read in small steps: %s', async (_what, text) => {
    const body = Buffer.from(text)
    await read(readJson(body), body)
    expect(turns).toBeGreaterThanOrEqual(Math.floor(body.length / 65_536 / STEPS_PER_SLICE) - 1)
  })

  it('with ordinary records is read in groups', async () => {
    const logRecords = Array.from({ length: 4_000 }, (_, i) => ({ body: `message ${i}` }))
    const body = encodeLogs([{ scopeLogs: [{ logRecords }] }])
    expect(await read(readProtobuf(body), body)).toBe('4000 records, 0 rejected')
    expect(turns).toBeGreaterThanOrEqual(40 / STEPS_PER_SLICE - 1)
  })
})
