import { encodeLogs, field } from '@sluice/harness/otlp-logs'
import { limits } from '@sluice/schema'
import { beforeEach, expect, it } from 'vitest'
import type { Intake } from '../../../src/intake/intake.ts'
import { readJson, readProtobuf } from '../../../src/protocols/otlp/otlp.ts'
import { Problem } from '../../../src/problems.ts'
import { stamp, steppedIntake, STEPS_PER_SLICE } from '../../support/intake.ts'
import { embed } from './otlp-api.ts'

/** A fifth of the largest body: enough for many steps. */
const max = limits.bodyBytesMax / 5

let intake: Intake
let taken: { turns: number }

beforeEach(() => {
  ;({ intake, taken } = steppedIntake())
})

const repeat = (bytes: Buffer, total: number): Buffer => Buffer.alloc(total - (total % bytes.length), bytes)
const inScope = (...fields: readonly Buffer[]): Buffer => embed(1, embed(2, ...fields))
/** A field that is an attribute. */
const attribute = (number: number, bytes: number): Buffer =>
  embed(number, field.bytes(1, 'k'), embed(2, field.bytes(1, 'a'.repeat(bytes))))
const unknown = field.varint(9, 1)
/** A group of the most fields. */
const group = Buffer.concat([Buffer.from([0x7b]), repeat(unknown, 2 * 16_384), Buffer.from([0x7c])])
const resource = embed(1, attribute(1, 60_000))
const tooLarge = embed(1, attribute(1, limits.metadataBytesMax - 100))
const tooLargeRecords = repeat(embed(2, attribute(6, 300)), 2_500 * 320)
const five = (bytes: Buffer): Buffer => repeat(bytes, 5 * bytes.length)

/** Bodies of 1 MiB, and at least how many steps they take. */
const attacks: readonly (readonly [what: string, body: Buffer, stepsMin: number])[] = [
  ['empty resources', repeat(field.bytes(1, ''), max), 120],
  ['empty scopes of a large resource', embed(1, resource, repeat(field.bytes(2, ''), max - 70_000)), 110],
  ['groups', repeat(group, max), 14],
  ['groups of a resource', field.bytes(1, repeat(group, max - 100)), 28],
  ['groups of a scope', inScope(repeat(group, max - 100), embed(2)), 28],
  ['unknown fields of a resource', field.bytes(1, repeat(unknown, max - 100)), 120],
  ['unknown fields of a scope', inScope(repeat(unknown, max - 100)), 120],
  ['large resources', five(embed(1, resource, embed(1, repeat(unknown, max / 5 - 80_000)))), 5],
  ['repeated fields of records', inScope(five(embed(2, repeat(field.varint(2, 1), max / 5 - 100)))), 5],
  ['records that are too large', embed(1, tooLarge, embed(2, tooLargeRecords)), 2_300],
  ['scopes of a large resource', embed(1, resource, repeat(embed(2, embed(2)), 6 * 400)), 400],
]

async function read(reading: ReturnType<typeof readProtobuf>, body: Buffer): Promise<void> {
  try {
    await intake.readRecords(reading.records, body, stamp, () => {})
  } catch (error) {
    if (!(error instanceof Problem)) throw error
  }
}

it.each(attacks)('a large request is read in small steps: %s', async (_what, body, stepsMin) => {
  expect(body.length).toBeLessThanOrEqual(max)
  await read(readProtobuf(body), body)
  expect(taken.turns).toBeGreaterThanOrEqual(Math.floor(stepsMin / STEPS_PER_SLICE) - 2)
})

it.each([
  ['empty resources', `{"resourceLogs":[${'{},'.repeat(340_000)}{}]}`],
  ['scopes without records', `{"resourceLogs":[{"scopeLogs":[${'{},'.repeat(340_000)}{}]}]}`],
  ['unknown fields', `{"resourceLogs":[],"a":[${'1,'.repeat(500_000)}1]}`],
  ['names', `{"resourceLogs":[{${'"a":1,'.repeat(170_000)}"b":1}]}`],
])('a large request in JSON is read in small steps: %s', async (_what, text) => {
  const body = Buffer.from(text)
  await read(readJson(body), body)
  expect(taken.turns).toBeGreaterThanOrEqual(Math.floor(body.length / 65_536 / STEPS_PER_SLICE) - 1)
})

it('a large request with ordinary records is read in groups', async () => {
  const logRecords = Array.from({ length: 4_000 }, (_, i) => ({ body: `message ${i}` }))
  const body = encodeLogs([{ scopeLogs: [{ logRecords }] }])
  await read(readProtobuf(body), body)
  expect(taken.turns).toBeGreaterThanOrEqual(40 / STEPS_PER_SLICE - 1)
})
