import { limits } from '@sluice/schema'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { type BodyFormat, jsonFormat, ndjsonFormat } from '../../src/intake/body.ts'
import type { Intake } from '../../src/intake/intake.ts'
import type { SourceRecord } from '../../src/intake/records.ts'
import type { Problem } from '../../src/problems.ts'
import { noScanner, parseEntries, stamp, steppedIntake, STEPS_PER_SLICE } from '../support/intake.ts'

/** A fifth of the largest body: enough for many steps. A step is 64 KiB or one entry. */
const max = limits.bodyBytesMax / 5

let intake: Intake
let taken: { turns: number }

beforeEach(() => {
  ;({ intake, taken } = steppedIntake(noScanner))
})

const fill = (head: string, unit: string, tail: string, bytes = max): string =>
  head + unit.repeat(Math.floor((bytes - head.length - tail.length) / unit.length)) + tail

const parse = (body: string, format = jsonFormat) => parseEntries(intake, Buffer.from(body), stamp, format)
const expectTurns = (body: string): void =>
  expect(taken.turns).toBeGreaterThanOrEqual(Math.floor(body.length / 65_536 / STEPS_PER_SLICE))

const head = '{"level":"info","message":"x","metadata":{'
const tooLarge = { code: 'invalid_entry', errors: [{ path: '/metadata', code: 'too_large' }] }

describe('a large body', () => {
  // At the size of the largest body, each once took seconds in one turn.
  it.each([
    ['an escaped name, objects, and 1e400', fill(`${head}"\\n":1,"a":[`, '{},', '1e400]}}'), tooLarge],
    [
      'escaped names at the top level',
      fill('{"level":"info","message":"x"', ',"\\u0061":1', ',"n":1e400}'),
      { code: 'invalid_entry', errors: [{ path: '', code: 'too_large' }] },
    ],
    ['escaped names in the metadata', fill(`${head}"a":1`, ',"\\n":1', '}}'), tooLarge],
    ['plain names', fill(`${head}"a":1`, ',"abc":1', '}}'), tooLarge],
    ['arrays', fill(`${head}"a":`, '[', '1', max / 2) + ']'.repeat(max / 2 - 100), { code: 'invalid_json' }],
    ['text after a long string', fill('{"level":"', 'a', '"'), { code: 'invalid_json' }],
  ])('is rejected in small steps, and no object is made of it: %s', async (_what, body, problem) => {
    const parsing = vi.spyOn(JSON, 'parse')
    await expect(parse(body)).rejects.toMatchObject(problem)
    expectTurns(body)
    expect(parsing.mock.calls.length).toBe(0)
  })

  it('with many large entries has a turn for each few entries', async () => {
    const entry = fill(`${head}"a":[`, '{},', '1e400]}}', limits.metadataBytesMax)
    const body = `[${Array.from({ length: 15 }, () => entry).join(',')}]`
    const { rows, entries } = await parse(body)
    expect({ rows: rows.count, entries }).toEqual({ rows: 15, entries: 15 })
    expect(taken.turns).toBeGreaterThanOrEqual((body.length / 65_536 + 15) / (STEPS_PER_SLICE + 1))
  })

  it('of lines is divided like a single value', async () => {
    const body = `${fill('', ' ', '\n', max / 2)}${fill('"', 'a', '"', max / 2)}`
    expect((await parse(body, ndjsonFormat)).entries).toBe(1)
    expectTurns(body)
  })

  it('lets other requests pass in between', async () => {
    const order: string[] = []
    const small = '{"level":"info","message":"m","a":1}'
    const parsed = [fill('[', ' ', ']'), small].map((body) => parse(body).then(() => order.push(body)))
    await Promise.all(parsed)
    expect(order[0]).toBe(small)
  })

  it('is rejected if the parser has no room for its project or at all, until bytes are released', async () => {
    const body = Buffer.alloc(limits.bodyBytesMax, ' ')
    body.write('[')
    // In the second slice.
    body.write('}', 400_000)
    const send = (projectId: string): Promise<string> =>
      intake.parse(body, { ...stamp, projectId }, jsonFormat).then(
        () => 'accepted',
        ({ code, headers }: Problem) => `${projectId} ${code} ${headers['retry-after'] ?? ''}`,
      )
    const codes = await Promise.all(['aaaaaaa', 'bbbbbbb', 'cc'].flatMap((ids) => ids.split('').map(send)))
    expect(codes.filter((code) => code.includes('overloaded')).toSorted()).toEqual([
      'a overloaded 1',
      'b overloaded 1',
      'c overloaded 1',
      'c overloaded 1',
    ])
    expect(await send('a')).toBe('a invalid_json ')
  })
})

describe('a small body', () => {
  const body = Buffer.from('[{"level":"info","message":"m","a":1e400},{}]')
  /** How many bodies are begun. */
  let begun: number

  beforeEach(() => {
    begun = 0
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

  it.each<[what: string, read: () => Promise<unknown>]>([
    ['entries', () => intake.parse(body, stamp, counting)],
    ['records', () => intake.readRecords(oneRecord, body, stamp, () => {})],
  ])('of %s is parsed in the turn in which it arrived, unless others took its time', async (_what, read) => {
    let begunInTurn: number | undefined
    const endTurn = (): void => void (begunInTurn = begun)
    setImmediate(endTurn)
    await read()
    expect(begunInTurn).toBeUndefined()
    await Promise.all(Array.from({ length: 20 }, read))
    expect(begunInTurn).toBeLessThan(STEPS_PER_SLICE + 1)
    expect(begun).toBe(21)
  })
})
