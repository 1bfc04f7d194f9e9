import { eventually, pause } from '@sluice/harness'
import { audit, isClean, readStored } from '@sluice/harness/audit'
import { command, select } from '@sluice/harness/clickhouse'
import { awaitInserts } from '@sluice/harness/drain'
import { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { expectQueued, report, shorterWaits } from './support.ts'

const FED_MS = 10_000
const CHUNKS_PER_S = 20
/** Each of these makes a batch that cannot be finished. */
const REJECTED_PER_S = 1
/** A good entry waits for its batch, and for a split if the batch has a rejected row. */
const STORED_WITHIN_MS = 8_000
/** See shorter-waits.ts. The limit of the worker is three minutes. */
const UNKNOWN_REJECTION_MS = 10_000
/** Until then it does not matter that the test began to measure before the first attempt. */
const MARGIN_MS = 3_000
/** Longer than rows are rejected before they become dead letters. */
const BROKEN_MS = UNKNOWN_REJECTION_MS + 3_000
/** The time until the end of the test file. */
const LONG_MS = 600_000

let fleet: Fleet

beforeAll(async () => {
  fleet = await Fleet.start({ environment: shorterWaits })
  for (let worker = 0; worker < 2; worker += 1) await fleet.startWorker()
})

afterAll(() => fleet?.stop())

const alterLogs = (change: string): Promise<void> =>
  command(fleet.services.clickhouse, `ALTER TABLE logs ${change}`)
/** ClickHouse rejects a row that fails with CANNOT_COMPILE_REGEXP, which is not a listed code. */
const addRule = (pattern: string): Promise<void> =>
  alterLogs(`ADD CONSTRAINT rule CHECK match('', ${pattern}) >= 0`)
const dropRule = (): Promise<void> => alterLogs('DROP CONSTRAINT rule')

async function storedOf({ label }: Journal): Promise<{ rows: number; deadLetters: number }> {
  const copies = [...(await readStored(fleet.services.clickhouse, label)).values()]
  const sum = (what: 'rows' | 'deadLetters'): number => copies.reduce((all, each) => all + each[what], 0)
  return { rows: sum('rows'), deadLetters: sum('deadLetters') }
}

/** Waits until all entries of the journals are stored as rows, each of them once. */
async function untilStored(...journals: readonly Journal[]): Promise<void> {
  const repairedMs = performance.now()
  await eventually(() => expectQueued(fleet, 0, 0))
  report(`all stored ${Math.round(performance.now() - repairedMs)} ms after the cause was gone`)
  await awaitInserts(fleet.services.clickhouse)
  for (const journal of journals) {
    expect((await audit(fleet.services.clickhouse, journal)).findings).toSatisfy(isClean)
    expect(await storedOf(journal)).toEqual({ rows: journal.size, deadLetters: 0 })
  }
}

const deadLetters = (): Promise<unknown[]> =>
  select(
    fleet.services.clickhouse,
    "SELECT 1 FROM dead_letters WHERE code = 'CANNOT_COMPILE_REGEXP' AND reason != ''",
  )

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

it('rows that ClickHouse rejects with an unknown code delay no others, and are stored when the cause is gone', async () => {
  await addRule('message')
  const [good, rejected] = [new Journal('good'), new Journal('rejected[')]
  const feeding = [
    fleet.feed(good, { chunksPerS: CHUNKS_PER_S, rowsPerChunk: 2, durationMs: FED_MS }),
    fleet.feed(rejected, { chunksPerS: REJECTED_PER_S, rowsPerChunk: 1, durationMs: FED_MS }),
  ]
  const delays = await watchDelays(good, FED_MS)
  const slowest = Math.max(...delays)
  report(`good entries were stored after at most ${Math.round(slowest)} ms`)
  await Promise.all(feeding)
  expect(slowest).toBeLessThan(STORED_WITHIN_MS)
  expect(await storedOf(rejected)).toEqual({ rows: 0, deadLetters: 0 })
  await dropRule()
  await untilStored(good, rejected)
}, 180_000)

it('a table that rejects all rows with an unknown code for longer than rows wait before they become dead letters costs no row', async () => {
  const journal = new Journal('broken')
  const inserts = fleet.gate.acknowledged.length
  const feeding = fleet.feed(journal, { chunksPerS: CHUNKS_PER_S, rowsPerChunk: 2, durationMs: BROKEN_MS })
  await eventually(async () => expect(fleet.gate.acknowledged.length).toBeGreaterThan(inserts))
  await addRule("concat(message, '[')")
  await feeding
  await dropRule()
  await untilStored(journal)
}, 180_000)

// The last test: its feed goes on until the fleet stops.
it('rows that ClickHouse rejects with an unknown code for long become dead letters with the reason, and not before their time', async () => {
  await addRule('message')
  const [good, rejected] = [new Journal('accepted'), new Journal('long[')]
  await Promise.all([fleet.add(rejected, 5, 2), fleet.add(good, 20, 2)])
  const startedMs = performance.now()
  // Other rows show that the table accepts rows.
  void fleet.feed(good, { chunksPerS: 1, rowsPerChunk: 1, durationMs: LONG_MS })
  await pause(UNKNOWN_REJECTION_MS - MARGIN_MS)
  expect(await deadLetters()).toEqual([])
  await eventually(async () => expect(await deadLetters()).toHaveLength(rejected.size))
  report(`dead letters after ${Math.round(performance.now() - startedMs)} ms`)
  const copies = [...(await readStored(fleet.services.clickhouse, rejected.label)).values()]
  expect(copies).toEqual(Array.from({ length: rejected.size }, () => ({ rows: 0, deadLetters: 1 })))
}, 180_000)
