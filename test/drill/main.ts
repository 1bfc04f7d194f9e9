// `npm run lab -- drill`: sends entries to an installation on this machine while an operator practises a runbook, then compares what was
// acknowledged with what is stored.
import { pause, seededRandom } from '@sluice/harness'
import { CommandLine } from '@sluice/harness/command-line'
import { Journal } from '@sluice/harness/journal'
import { Load } from '@sluice/harness/load'
import { tally } from '@sluice/harness/process-logs'
import { describeSettlement, isExactlyOnce, settle } from '@sluice/harness/settle'
import type { Installation } from '@sluice/local'
import { shardNames } from '@sluice/queue'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const commandLine = new CommandLine(`npm run lab -- drill [options]

  --rate N           entries per second; default 300
  --seconds N        duration; default 60
  --drain-seconds N  how long the queue may take to become empty at the end; default 600
  --shards N         shards that are in use at any time of the run; default 1

The installation is the one that \`npm start\` runs, in the folder SLUICE_DATA_DIR (default .data). For another one, SLUICE_API_URL has the
addresses of API processes, separated by commas, and SLUICE_API_KEY a key. REDIS_URL, SLUICE_PREFIX and CLICKHOUSE_URL, CLICKHOUSE_USERNAME,
CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE are its others.
Exits with status 1 if an acknowledged entry is lost or duplicated.
`)
const values = commandLine.read({
  rate: { type: 'string', default: '300' },
  seconds: { type: 'string', default: '60' },
  'drain-seconds': { type: 'string', default: '600' },
  shards: { type: 'string', default: '1' },
})
const entriesPerSecond = commandLine.positive('rate', values.rate)
const seconds = commandLine.positive('seconds', values.seconds)
const drainDeadlineMs = commandLine.positive('drain-seconds', values['drain-seconds']) * 1_000
const shards = commandLine.positive('shards', values.shards)
const { env } = process
const localFile = join(env['SLUICE_DATA_DIR'] ?? '.data', 'local.json')
const local: Partial<Installation> =
  env['SLUICE_API_KEY'] === undefined && existsSync(localFile)
    ? (JSON.parse(readFileSync(localFile, 'utf8')) as Installation)
    : {}
const apiKey =
  env['SLUICE_API_KEY'] ??
  local.apiKey ??
  commandLine.fail(`\`npm start\` does not run (${localFile}), and SLUICE_API_KEY is not set`)
const apiUrls = (env['SLUICE_API_URL'] ?? local.apiUrl ?? 'http://127.0.0.1:3000').split(',')
const stores = {
  redisUrl: env['REDIS_URL'] ?? local.redisUrl ?? 'redis://127.0.0.1:6379',
  shards: shardNames(env['SLUICE_PREFIX'] ?? 'sluice', shards),
  clickhouse: local.clickhouse ?? {
    url: env['CLICKHOUSE_URL'] ?? 'http://127.0.0.1:8123',
    username: env['CLICKHOUSE_USERNAME'] ?? 'default',
    password: env['CLICKHOUSE_PASSWORD'] ?? '',
    database: env['CLICKHOUSE_DATABASE'] ?? 'sluice',
  },
}
const REPORT_INTERVAL_S = 10

const journal = new Journal(`drill-${randomUUID()}`)
const load = new Load({ journal, apiUrls, apiKey, random: seededRandom(Date.now()), entriesPerSecond })
load.start()
for (let passedS = 0; passedS < seconds; passedS += REPORT_INTERVAL_S) {
  const before = new Map(journal.answers)
  const sentBefore = journal.size
  await pause(Math.min(REPORT_INTERVAL_S, seconds - passedS) * 1_000)
  log(`${journal.size - sentBefore} entries sent; responses: ${changes(before)}`)
}
await load.stop()
log('waiting until the queue is empty')
const settlement = await settle(stores, journal, { drainDeadlineMs })
log(describeSettlement(journal, settlement))
process.exitCode = isExactlyOnce(settlement) ? 0 : 1

function log(line: string): void {
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`)
}

/** How often each response was given since then, the most frequent first. */
function changes(before: ReadonlyMap<string, number>): string {
  const counts = tally(
    [...journal.answers].flatMap(([answer, count]) =>
      Array<string>(count - (before.get(answer) ?? 0)).fill(answer),
    ),
  )
  return Object.entries(counts)
    .map(([answer, count]) => `${answer} × ${count}`)
    .join(', ')
}
