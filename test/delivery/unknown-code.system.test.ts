import { eventually, pause } from '@sluice/harness'
import { isClean, readStored } from '@sluice/harness/audit'
import { isEmpty } from '@sluice/harness/drain'
import type { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { RejectingFleet } from './rejecting-fleet.ts'
import { report } from './report.ts'

const FED_MS = 30_000
const CHUNKS_PER_S = 20
/** Each of these makes a batch that cannot be finished. */
const REJECTED_PER_S = 0.5
/** A good entry waits for its batch, and for a split if the batch has a rejected row. */
const STORED_WITHIN_MS = 8_000
const BROKEN_MS = 30_000
/** Batches with rejected rows are retried every 20 s. */
const REPAIRED_WITHIN_MS = 60_000

let rejecting: RejectingFleet
let fleet: Fleet

beforeEach(async () => {
  rejecting = await RejectingFleet.start()
  fleet = rejecting.fleet
})

afterEach(() => rejecting?.stop())

async function storedOf({ label }: Journal): Promise<{ rows: number; deadLetters: number }> {
  const copies = [...(await readStored(fleet.services.clickhouse, label)).values()]
  return {
    rows: copies.reduce((sum, { rows }) => sum + rows, 0),
    deadLetters: copies.reduce((sum, { deadLetters }) => sum + deadLetters, 0),
  }
}

/** Measures how long entries wait until they are stored, ms, by samples of the total. */
async function watchDelays(journal: Journal, durationMs: number): Promise<number[]> {
  const samples: { sent: number; atMs: number }[] = []
  const delays: number[] = []
  for (const endMs = performance.now() + durationMs; performance.now() < endMs; await pause(500)) {
    samples.push({ sent: journal.count('acknowledged'), atMs: performance.now() })
    const { rows } = await storedOf(journal)
    while (samples[0] !== undefined && samples[0].sent <= rows)
      delays.push(performance.now() - (samples.shift()?.atMs ?? 0))
  }
  return [...delays, ...samples.map(({ atMs }) => performance.now() - atMs)]
}

describe('rows that ClickHouse rejects with an unknown code', () => {
  it('delay no others, and are stored when the cause is gone', async () => {
    await rejecting.addRule('message')
    const [good, rejected] = [new Journal('good'), new Journal('rejected[')]
    const feeding = [
      fleet.feed(good, { chunksPerS: CHUNKS_PER_S, rowsPerChunk: 2, durationMs: FED_MS }),
      fleet.feed(rejected, { chunksPerS: REJECTED_PER_S, rowsPerChunk: 1, durationMs: FED_MS }),
    ]
    const delays = await watchDelays(good, FED_MS)
    const slowest = Math.max(...delays)
    const median = delays.toSorted((a, b) => a - b)[Math.floor(delays.length / 2)] ?? 0
    report(
      `good entries were stored after ${Math.round(median)} ms (median), ${Math.round(slowest)} ms (slowest)`,
    )
    await Promise.all(feeding)
    expect(slowest).toBeLessThan(STORED_WITHIN_MS)
    expect(await storedOf(rejected)).toEqual({ rows: 0, deadLetters: 0 })
    await rejecting.dropRule()
    const repairedMs = performance.now()
    await eventually(REPAIRED_WITHIN_MS, async () =>
      expect(await fleet.queued()).toEqual({ waiting: 0, active: 0 }),
    )
    report(`all stored ${Math.round(performance.now() - repairedMs)} ms after the cause was gone`)
    const { findings, queues } = await fleet.settle(good, 5_000)
    expect(queues.every(isEmpty)).toBe(true)
    expect(findings).toSatisfy(isClean)
    expect(await storedOf(good)).toEqual({ rows: good.size, deadLetters: 0 })
    expect(await storedOf(rejected)).toEqual({ rows: rejected.size, deadLetters: 0 })
  }, 180_000)
})

describe('a table that rejects all rows with an unknown code', () => {
  it('costs no row: when it is repaired, everything is stored, and nothing is dead-lettered', async () => {
    const journal = new Journal('broken')
    const feeding = fleet.feed(journal, { chunksPerS: CHUNKS_PER_S, rowsPerChunk: 2, durationMs: BROKEN_MS })
    await eventually(10_000, async () => expect(fleet.gate.acknowledged.length).toBeGreaterThan(0))
    await rejecting.addRule("concat(message, '[')")
    await feeding
    await rejecting.dropRule()
    const repairedMs = performance.now()
    await eventually(REPAIRED_WITHIN_MS, async () =>
      expect(await fleet.queued()).toEqual({ waiting: 0, active: 0 }),
    )
    report(`all stored ${Math.round(performance.now() - repairedMs)} ms after the repair`)
    const { findings, stored, queues } = await fleet.settle(journal, 5_000)
    expect(queues.every(isEmpty)).toBe(true)
    expect(findings).toSatisfy(isClean)
    expect(stored).toMatchObject({ rows: journal.size, deadLetters: 0 })
  }, 180_000)
})
