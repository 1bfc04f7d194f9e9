import { encodeLogs, type OtlpLogRecord } from '@sluice/harness/otlp-logs'
import { RowScanner } from '@sluice/row-scanner'
import { EntryValidator, makeRowPrefix } from '@sluice/rows'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Intake } from '../../../src/intake/intake.ts'
import { readProtobuf } from '../../../src/protocols/otlp/otlp.ts'
import { protobufRecords } from '../../../src/protocols/otlp/protobuf-records.ts'
import { Turns } from '../../../src/turns.ts'
import { oneScope } from './otlp-api.ts'

const ID = '01a1fb4d-5bd1-74f9-83e0-56d2211cd84d'
const ids = { next: () => ID, write: (memory: Buffer, to: number): void => void memory.write(ID, to) }
const stamp = { projectId: 'demo', retentionDays: 30, receivedAtMs: Date.UTC(2026, 10, 20) }
const prefix = makeRowPrefix(stamp)

/** Some records of a length, most of them ordinary. */
const anyRecords = fc
  .record({
    count: fc.integer({ min: 1, max: 60 }),
    bytes: fc.oneof(
      { weight: 8, arbitrary: fc.integer({ max: 3_000, min: 0 }) },
      { weight: 2, arbitrary: fc.integer({ min: 50_000, max: 66_000 }) },
      { weight: 1, arbitrary: fc.integer({ min: 120_000, max: 140_000 }) },
    ),
    isOrdinary: fc.integer({ min: 0, max: 9 }).map((number) => number > 0),
  })
  .map(({ count, bytes, isOrdinary }): OtlpLogRecord[] =>
    Array.from({ length: bytes > 3_000 ? Math.ceil(count / 20) : count }, (_, i) => ({
      body: isOrdinary ? `${i} ${'x'.repeat(bytes)}` : Buffer.alloc(bytes),
    })),
  )
const anyBody = fc
  .array(anyRecords, { minLength: 1, maxLength: 12 })
  .map((groups) => encodeLogs(oneScope(...groups.flat())))

type Groups = Generator<string, void>

/** Reads a body: a text for each group of records that becomes rows at once, and for each record that is decoded. */
function* groupsOf(body: Buffer, scanner: RowScanner): Groups {
  const items = protobufRecords(body, (scopeLogs, at, origin) =>
    scanner.scanRecords(scopeLogs, at, origin, prefix),
  )
  for (const item of items) {
    if (item !== undefined) yield 'rows' in item ? `${item.rows.count}:${item.rows.byteLength}` : 'decoded'
  }
}

/** Reads bodies together. @param next the index of the body whose turn it is, any number of times */
function interleave(bodies: readonly Buffer[], next: () => number): string[][] {
  const scanner = new RowScanner(ids)
  const read: string[][] = bodies.map(() => [])
  const open = new Map(bodies.map((body, i): [number, Groups] => [i, groupsOf(body, scanner)]))
  while (open.size > 0) {
    const [index, groups] = Array.from(open)[next() % open.size] ?? []
    if (index === undefined || groups === undefined) break
    const step = groups.next()
    if (step.done === true) open.delete(index)
    else read[index]?.push(step.value)
  }
  return read
}

describe('the groups of records that become rows at once', () => {
  it('are the same if other requests are read at the same time', () => {
    fc.assert(
      fc.property(
        fc.array(anyBody, { minLength: 2, maxLength: 3 }),
        fc.infiniteStream(fc.nat()),
        (bodies, turns) => {
          const alone = bodies.map((body) => Array.from(groupsOf(body, new RowScanner(ids))))
          expect(interleave(bodies, () => turns.next().value as number)).toEqual(alone)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('are as large as one step should be, also next to an unusual record', () => {
    const records = Array.from({ length: 1_000 }, (_, i) => ({ body: i === 700 ? 1 : 'x'.repeat(1_500) }))
    const groups = Array.from(groupsOf(encodeLogs(oneScope(...records)), new RowScanner(ids)))
    expect(groups.filter((group) => group === 'decoded')).toHaveLength(1)
    // A part has 128 KiB, and the next one begins at the latest 64 KiB after it.
    expect(groups.length).toBeLessThan(2 + (1_000 * 1_500) / 60_000)
  })
})

describe('the pieces of a request', () => {
  it('are the same if other requests are read at the same time', async () => {
    const bodies = [9_000, 5_000, 4_000].map((length, k) =>
      encodeLogs(
        oneScope(
          ...Array.from({ length }, (_, i) => ({ body: `request ${i} ${'x'.repeat(120 + ((i + k) % 37))}` })),
        ),
      ),
    )
    // Each look at the clock is 5 ms later: each step is a slice, and the requests take turns.
    let nowMs = 0
    const turns = new Turns(undefined, () => (nowMs += 5))
    const intake = new Intake(new EntryValidator(), ids, new RowScanner(ids), turns)
    const read = async (body: Buffer): Promise<string[]> => {
      const { pieces } = await intake.readRecords(readProtobuf(body).records, body, stamp, () => {})
      return pieces.map(({ start, end }) => `${start}-${end}`)
    }
    const alone: string[][] = []
    for (const body of bodies) alone.push(await read(body))
    expect(alone[0]?.length).toBeGreaterThan(2)
    expect(await Promise.all(bodies.map(read))).toEqual(alone)
  })
})
