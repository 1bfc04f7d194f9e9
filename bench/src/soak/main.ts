// `npm run lab -- soak`: keeps a steady load on Sluice, for an hour by default, and prints its size every minute. What grows is a leak.
import { CommandLine } from '@sluice/harness/command-line'
import { Supervisor } from '@sluice/local'
import { LoadProcess } from '../load/load-process.ts'
import { acceptedPerS, type LoadResult } from '../load/protocol.ts'
import { sizeOf } from '../measure/process-meter.ts'
import { redisInfo } from '../measure/redis-info.ts'
import { Store } from '../measure/store.ts'
import { roles, startSluice, type System } from '../systems.ts'

const commandLine = new CommandLine(`npm run lab -- soak [options]

  --minutes N       duration, at least 1; default 60
  --rate N          entries per second; choose 70 % of the highest sustained rate of npm run lab -- bench; default 70000
  --help            prints this text

Exits with status 1 if an entry was lost or duplicated.
`)
const values = commandLine.read({
  minutes: { type: 'string', default: '60' },
  rate: { type: 'string', default: '70000' },
})
const minutes = Number(values.minutes)
if (!(minutes >= 1)) commandLine.fail('--minutes must be a number of at least 1')
const entriesPerS = commandLine.positive('rate', values.rate)

const MINUTE_MS = 60_000
const SEED = 42
const DRAIN_DEADLINE_MS = 120_000
/** Twice what half of the load needs on two cores. A soak test detects growth; it need not reach the highest rate. */
const CONNECTIONS = 48

const supervisor = new Supervisor()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void supervisor.stop({ force: true }).finally(() => process.exit(1)))
}
const load = new LoadProcess()
try {
  const system = await startSluice({ supervisor })
  const store = new Store(system.clickhouse)
  await soak(system, store)
  await store.close()
} finally {
  await load.stop()
  await supervisor.stop()
}

async function soak(system: Required<System>, store: Store): Promise<void> {
  const { url, apiKey } = system
  await load.prepare({ url, apiKey, requests: [{ share: 1, entries: 100 }], seed: SEED })
  console.log(
    'minute  entries/s  rejected  ack p50/p99 ms  backlog  RSS MB: API worker Redis ClickHouse  ' +
      'handles: API worker Redis ClickHouse  Redis keys, KB  parts',
  )
  let accepted = 0
  let rejected = 0
  for (let minute = 1; minute <= minutes; minute += 1) {
    const result = await load.run({
      loop: 'open',
      connections: CONNECTIONS,
      durationMs: MINUTE_MS,
      entriesPerS,
    })
    accepted += result.accepted
    rejected += countRejected(result)
    console.log(await describeMinute(minute, result, accepted, system, store))
  }
  const signal = new AbortController().signal
  const stored = await store.waitForCount(accepted, { deadlineMs: DRAIN_DEADLINE_MS, signal })
  console.log(`accepted ${accepted}, stored ${stored}; ${rejected} requests rejected`)
  // The entries of a request that got a 503 may still be stored, once.
  if (stored < accepted || (stored > accepted && rejected === 0)) process.exitCode = 1
}

function countRejected({ rejected }: LoadResult): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

async function describeMinute(
  minute: number,
  result: LoadResult,
  accepted: number,
  system: Required<System>,
  store: Store,
): Promise<string> {
  const backlog = accepted - (await store.count())
  const [row] = await store.select<{ parts: string }>(
    'SELECT count() AS parts FROM system.parts WHERE active AND database = currentDatabase()',
  )
  const pids = system.pids()
  const sizes = roles.map((role) => sizeOf(pids[role]))
  const usedBytes = Number((await redisInfo(system.redisUrl, 'memory')).get('used_memory'))
  // `db0:keys=…,expires=…`. The line is missing while the database is empty.
  const db0 = (await redisInfo(system.redisUrl, 'keyspace')).get('db0') ?? ''
  return [
    minute,
    Math.round(acceptedPerS(result)),
    countRejected(result),
    `${result.latencyMs.p50.toFixed(1)}/${result.latencyMs.p99.toFixed(1)}`,
    backlog,
    sizes.map(({ residentBytes }) => Math.round(residentBytes / 2 ** 20)).join(' '),
    sizes.map(({ handles }) => handles).join(' '),
    `${/keys=(\d+)/.exec(db0)?.[1] ?? 0} ${Math.round(usedBytes / 1_024)}`,
    row?.parts,
  ].join('  ')
}
