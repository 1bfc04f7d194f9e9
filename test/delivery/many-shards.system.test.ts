import { Fleet } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { isExactlyOnce } from '@sluice/harness/settle'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { report } from './support.ts'

const SHARDS = 16
/** With two slots, the shards wait for each other. */
const INSERT_DELAY_MS = 400
const FEED = { chunksPerS: 90, rowsPerChunk: 10, durationMs: 12_000 }
/** Two inserts of each shard. The first ones are small, since their shards did not wait. */
const WARM_UP_INSERTS = 2 * SHARDS

let fleet: Fleet

beforeAll(async () => {
  fleet = await Fleet.start({ shards: SHARDS })
  await fleet.startWorker()
})

afterAll(() => fleet?.stop())

it('one worker with slow inserts stores the chunks of all shards, in turns, and recovers nothing', async () => {
  const journal = new Journal('many-shards')
  fleet.gate.insertDelayMs = INSERT_DELAY_MS
  await fleet.feed(journal, FEED)
  // A shard that gets a slot again before the others have had one inserts what arrived in half a second.
  const sizes = fleet.gate.acknowledged.slice(WARM_UP_INSERTS).map(({ rows }) => rows)
  const mean = sizes.reduce((sum, rows) => sum + rows, 0) / sizes.length
  report(`rows per insert: ${sizes.join(' ')}`)
  expect(sizes.length).toBeGreaterThan(SHARDS / 2)
  expect(sizes.filter((rows) => rows < mean / 2).length).toBeLessThan(sizes.length / 4)
  const settlement = await fleet.settle(journal)
  expect(settlement).toSatisfy(isExactlyOnce)
  expect(settlement.stored).toMatchObject({ rows: journal.size, deadLetters: 0 })
  expect(fleet.logged('recovering a batch')).toEqual([])
}, 150_000)
