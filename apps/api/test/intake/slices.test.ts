import { limits } from '@sluice/schema'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { type BodyFormat, jsonFormat, ndjsonFormat } from '../../src/intake/body.ts'
import type { Intake } from '../../src/intake/intake.ts'
import type { SourceRecord } from '../../src/intake/records.ts'
import {
  noScanner,
  parseEntries,
  problemOf,
  stamp,
  steppedIntake,
  STEPS_PER_SLICE,
} from '../support/intake.ts'

/** A fifth of the largest body: enough for many steps. A step is 64 KiB or one entry. */
const max = limits.bodyBytesMax / 5

let intake: Intake
let taken: { turns: number }

beforeEach(() => {
  ;({ intake, taken } = steppedIntake(noScanner))
})

const fill = (head: string, unit: string, tail: string, bytes = max): string =>
  head + unit.repeat(Math.floor((bytes - head.length - tail.length) / unit.length)) + tail

const head = '{"level":"info","message":"x","metadata":{'
/** Bodies that once took seconds in one turn, at the size of the largest body. */
const attacks: readonly (readonly [what: string, body: string, error: string])[] = [
  [
    'an escaped name, objects, and an inexact number',
    fill(`${head}"\\n":1,"a":[`, '{},', '1e400]}}'),
    '/metadata too_large',
  ],
  [
    'escaped names at the top level',
    fill('{"level":"info","message":"x"', ',"\\u0061":1', ',"n":1e400}'),
    ' too_large',
  ],
  ['escaped names in the metadata', fill(`${head}"a":1`, ',"\\n":1', '}}'), '/metadata too_large'],
  ['objects and an inexact number', fill(`${head}"a":[`, '{},', '1e400]}}'), '/metadata too_large'],
  [
    'numbers, an inexact number, and an escaped name',
    fill(`${head}"\\n":1,"a":[`, '1,', '1e400]}}'),
    '/metadata too_large',
  ],
  ['plain names', fill(`${head}"a":1`, ',"abc":1', '}}'), '/metadata too_large'],
  ['arrays in arrays', fill(`${head}"a":`, '[', '1', max / 2) + ']'.repeat(max / 2 - 100), 'invalid_json'],
  ['text after a long string', fill('{"level":"', 'a', '"'), 'invalid_json'],
]

describe('a large body', () => {
  it.each(attacks)('is rejected in small steps: %s', async (_what, body, error) => {
    const parse = vi.spyOn(JSON, 'parse')
    const { code, errors } = await problemOf(() => intake.parse(Buffer.from(body), stamp, jsonFormat))
    const [first] = errors
    expect(first === undefined ? code : `${first.path} ${first.code}`).toBe(error)
    expect(taken.turns).toBeGreaterThanOrEqual(Math.floor(body.length / 65_536 / STEPS_PER_SLICE))
    // No object was made of it.
    expect(parse.mock.calls.length).toBe(0)
  })

  it('with many large entries has a turn for each few entries', async () => {
    const entry = fill(`${head}"a":[`, '{},', '1e400]}}', limits.metadataBytesMax)
    const body = `[${Array.from({ length: 15 }, () => entry).join(',')}]`
    expect(body.length).toBeLessThan(max)
    const { rows, entries } = await parseEntries(intake, Buffer.from(body), stamp, jsonFormat)
    expect({ rows: rows.count, entries }).toEqual({ rows: 15, entries: 15 })
    expect(taken.turns).toBeGreaterThanOrEqual((body.length / 65_536 + 15) / (STEPS_PER_SLICE + 1))
  })

  it('of lines is divided like a single value', async () => {
    const body = `${fill('', ' ', '\n', max / 2)}${fill('"', 'a', '"', max / 2)}`
    const { entries } = await parseEntries(intake, Buffer.from(body), stamp, ndjsonFormat)
    expect(entries).toBe(1)
    expect(taken.turns).toBeGreaterThanOrEqual(Math.floor(body.length / 65_536 / STEPS_PER_SLICE))
  })

  it('lets other requests pass in between', async () => {
    const order: string[] = []
    const small = '{"level":"info","message":"m","a":1}'
    await Promise.all([
      intake.parse(Buffer.from(fill('[', ' ', ']')), stamp, jsonFormat).then(() => order.push('large')),
      intake.parse(Buffer.from(small), stamp, jsonFormat).then(() => order.push('small')),
    ])
    expect(order).toEqual(['small', 'large'])
  })

  it('is rejected if the parser has no room, and releases its bytes in the end', async () => {
    const body = Buffer.alloc(limits.bodyBytesMax, ' ')
    body.write('[')
    // In the second slice.
    body.write('}', 400_000)
    const send = (): Promise<string> =>
      intake.parse(body, stamp, jsonFormat).then(
        () => 'accepted',
        (problem: { code: string }) => problem.code,
      )
    const codes = await Promise.all(Array.from({ length: 10 }, send))
    expect(codes.filter((code) => code === 'overloaded')).toHaveLength(4)
    expect(await send()).toBe('invalid_json')
  })
})

describe('a small body', () => {
  const body = Buffer.from('[{"level":"info","message":"m","a":1e400},{}]')
  /** How many bodies are begun, and how many of them in the first turn. */
  let begun: number
  let inTurn: number

  beforeEach(() => {
    begun = 0
    setImmediate(() => (inTurn = begun))
  })

  const counting: BodyFormat = {
    isNdjson: false,
    findEntries: (bytes) => {
      begun += 1
      return jsonFormat.findEntries(bytes)
    },
  }
  function* oneRecord(): Generator<SourceRecord> {
    begun += 1
    yield { entry: { level: 'info', message: 'm' } }
  }
  const reads: readonly (readonly [what: string, read: () => Promise<unknown>])[] = [
    ['entries', () => intake.parse(body, stamp, counting)],
    ['records', () => intake.readRecords(oneRecord, body, stamp, () => {})],
  ]

  it.each(reads)('of %s is parsed within the turn in which it arrived', async (_what, read) => {
    let isLater = false
    setImmediate(() => (isLater = true))
    await read()
    expect(isLater).toBe(false)
  })

  it.each(reads)('of %s waits if others took the time of this turn', async (_what, read) => {
    await Promise.all(Array.from({ length: 20 }, read))
    expect(inTurn).toBeLessThan(STEPS_PER_SLICE)
    expect(begun).toBe(20)
  })
})
