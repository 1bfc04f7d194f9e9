import { eventually, pause } from '@sluice/harness'
import { isClean, readStored } from '@sluice/harness/audit'
import { isEmpty } from '@sluice/harness/drain'
import type { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { workerLimits } from '../../apps/worker/src/limits.ts'
import { RejectingFleet } from './rejecting-fleet.ts'
import { report } from './report.ts'

/** Batches with rejected rows are retried every 20 s. The rest is for a busy machine. */
const RETRIED_WITHIN_MS = 90_000
const TEST_DEADLINE_MS = 480_000

let rejecting: RejectingFleet
let fleet: Fleet

beforeEach(async () => {
  rejecting = await RejectingFleet.start()
  fleet = rejecting.fleet
})

afterEach(() => rejecting?.stop())

async function countDeadLetters(): Promise<number> {
  const result = await rejecting.clickhouse.query({
    query:
      "SELECT toUInt32(count()) AS n FROM dead_letters WHERE code = 'CANNOT_COMPILE_REGEXP' AND reason != ''",
    format: 'JSONEachRow',
  })
  const [row] = await result.json<{ n: number }>()
  return row?.n ?? 0
}

it(
  'rows that are rejected with an unknown code become dead letters with the reason after three minutes, not before',
  async () => {
    await rejecting.addRule('message')
    const [good, rejected] = [new Journal('good'), new Journal('rejected[')]
    await Promise.all([fleet.add(rejected, 5, 2), fleet.add(good, 20, 2)])
    const startedMs = performance.now()
    // Other rows show that the table accepts rows.
    void fleet.feed(good, { chunksPerS: 1, rowsPerChunk: 1, durationMs: TEST_DEADLINE_MS })
    await pause(workerLimits.unknownRejectionMs - 10_000)
    expect(await countDeadLetters()).toBe(0)
    await eventually(RETRIED_WITHIN_MS, async () => expect(await countDeadLetters()).toBe(rejected.size))
    report(`dead letters after ${Math.round(performance.now() - startedMs)} ms`)
    const copies = [...(await readStored(fleet.services.clickhouse, rejected.label)).values()]
    expect(copies).toEqual(Array.from({ length: rejected.size }, () => ({ rows: 0, deadLetters: 1 })))
  },
  TEST_DEADLINE_MS,
)

it(
  'a table that rejects all rows with an unknown code for more than three minutes costs no row',
  async () => {
    const journal = new Journal('broken')
    await rejecting.addRule("concat(message, '[')")
    await fleet.feed(journal, {
      chunksPerS: 5,
      rowsPerChunk: 2,
      durationMs: workerLimits.unknownRejectionMs + 30_000,
    })
    await rejecting.dropRule()
    const repairedMs = performance.now()
    await eventually(RETRIED_WITHIN_MS, async () =>
      expect(await fleet.queued()).toEqual({ waiting: 0, active: 0 }),
    )
    report(`all stored ${Math.round(performance.now() - repairedMs)} ms after the repair`)
    const { findings, stored, queues } = await fleet.settle(journal, 5_000)
    expect(queues.every(isEmpty)).toBe(true)
    expect(findings).toSatisfy(isClean)
    expect(stored).toMatchObject({ rows: journal.size, deadLetters: 0 })
  },
  TEST_DEADLINE_MS,
)
