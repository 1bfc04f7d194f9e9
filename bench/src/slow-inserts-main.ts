// Measures workers whose inserts are slow, so that their insert slots are the limit: how much one worker stores from 1 and from 16
// shards, and two workers compared with one; and how large the inserts of 2 and of 20 workers are under the same load.
import { CommandLine } from '@sluice/harness/command-line'
import { Fleet, type FleetOptions } from '@sluice/harness/fleet'
import { Journal } from '@sluice/harness/journal'
import { pause } from '@sluice/harness'
import { readPositive } from './options.ts'

const commandLine = new CommandLine(`node bench/src/slow-inserts-main.ts [options]

  --seconds N   length of each measurement; default 30
  --delay N     ms by which each insert is delayed; default 1200
  --rows N      rows per chunk; default 10
  --only LIST   shards, workers, saturation; default all three
  --help        prints this text
`)
const values = commandLine.read({
  seconds: { type: 'string', default: '30' },
  delay: { type: 'string', default: '1200' },
  rows: { type: 'string', default: '10' },
  only: { type: 'string', default: 'shards,workers,saturation' },
})
const windowMs = readPositive(commandLine, '--seconds', values.seconds) * 1_000
const insertDelayMs = readPositive(commandLine, '--delay', values.delay)
const rowsPerChunk = readPositive(commandLine, '--rows', values.rows)

const ROWS_PER_S = 900
/** By then every shard has had an insert slot. */
const WARM_UP_MS = 12_000
/** Two slots of one worker insert 833 rows per second: less than what is fed. */
const SATURATED_BATCH_ROWS = 500
const SATURATED_ROWS_PER_S = 3_000

interface Scenario {
  readonly name: string
  readonly workers: number
  readonly rowsPerS: number
  readonly fleet: FleetOptions
}

const scenarios: Readonly<Record<string, readonly Scenario[]>> = {
  shards: [1, 16].map((shards) => ({
    name: `1 worker, ${shards} shards`,
    workers: 1,
    rowsPerS: ROWS_PER_S,
    fleet: { shards },
  })),
  workers: [2, 20].map((workers) => ({
    name: `${workers} workers`,
    workers,
    rowsPerS: ROWS_PER_S,
    fleet: {},
  })),
  saturation: [1, 2].map((workers) => ({
    name: `${workers} saturated workers`,
    workers,
    rowsPerS: SATURATED_ROWS_PER_S,
    fleet: { environment: { BATCH_ROWS_MAX: String(SATURATED_BATCH_ROWS) } },
  })),
}

console.log('scenario                 fed rows/s  stored rows/s  inserts/s  rows/insert  recoveries')
for (const group of values.only.split(',')) {
  for (const scenario of scenarios[group] ?? commandLine.fail(`unknown scenario: ${group}`))
    console.log(await measure(scenario))
}
process.exit()

async function measure({ name, workers, rowsPerS, fleet: options }: Scenario): Promise<string> {
  const fleet = await Fleet.start(options)
  try {
    for (let started = 0; started < workers; started += 1) await fleet.startWorker()
    fleet.gate.insertDelayMs = insertDelayMs
    const journal = new Journal('slow-inserts')
    const durationMs = WARM_UP_MS + windowMs
    const feeding = fleet.feed(journal, { chunksPerS: rowsPerS / rowsPerChunk, rowsPerChunk, durationMs })
    await pause(WARM_UP_MS)
    const [fedBefore, before] = [journal.size, fleet.gate.acknowledged.length]
    await pause(windowMs)
    const inserts = fleet.gate.acknowledged.slice(before)
    const fed = journal.size - fedBefore
    await feeding
    const rows = inserts.reduce((sum, insert) => sum + insert.rows, 0)
    const perS = (count: number): string => ((count * 1_000) / windowMs).toFixed(1)
    return [
      name.padEnd(23),
      perS(fed).padStart(11),
      perS(rows).padStart(13),
      perS(inserts.length).padStart(9),
      (rows / inserts.length).toFixed(0).padStart(11),
      String(fleet.logged('recovering a batch').length).padStart(10),
    ].join('  ')
  } finally {
    await fleet.stop()
  }
}
