// `npm run lab -- readers`: what viewers of the live tail wait, what readers cost, and what they leave to ingestion.
import { setTimeout as delay } from 'node:timers/promises'
import { logsTable } from '@sluice/clickhouse'
import { command } from '@sluice/harness/clickhouse'
import { CommandLine } from '@sluice/harness/command-line'
import { startInstallation, startQuery, Supervisor } from '@sluice/local'
import { LoadProcess } from '../load/load-process.ts'
import { acceptedPerS } from '../load/protocol.ts'
import { cpuMs, sizeOf } from '../measure/process-meter.ts'
import { Store } from '../measure/store.ts'
import { readNames } from '../options.ts'
import { alignColumns, formatNumber } from '../report.ts'
import { inspectedAt, inspectedHeapBytes } from './inspected-heap.ts'
import { scanAllDay } from './scans.ts'
import { probeTail } from './tail-probe.ts'
import { openViewers } from './viewers.ts'

const parts = {
  wait: 'from the 202 of an entry to a viewer of the tail, at 2,000 and 20,000 entries per second',
  cost: 'CPU of ClickHouse and query process with 0, 1 and 100 tails, at --rate entries per second',
  scan: 'ingestion alone, and next to 1 and 4 clients that search a day in a loop',
  memory: 'query processes with one tail, 100, and 100 that are not read, at --rate entries per second',
} as const
type Part = keyof typeof parts

const commandLine = new CommandLine(`npm run lab -- readers [options]

  --only LIST    comma-separated; default wait,cost,scan of
${Object.entries(parts)
  .map(([name, text]) => `                 ${name.padEnd(8)} ${text}`)
  .join('\n')}
  --seconds N    of each measurement; default 15
  --rounds N     of scan; default 2
  --millions N   rows of the day that is searched; default 2
  --rate N       entries per second of cost and memory, and of scan instead of as many as possible; default 1000 and none
  --minutes N    of memory; default 10
  --help         prints this text
`)
const values = commandLine.read({
  only: { type: 'string', multiple: true },
  seconds: { type: 'string', default: '15' },
  rounds: { type: 'string', default: '2' },
  millions: { type: 'string', default: '2' },
  rate: { type: 'string' },
  minutes: { type: 'string', default: '10' },
})
const names = Object.keys(parts) as Part[]
const chosen = readNames(commandLine, '--only', values.only, names, names.slice(0, 3))
const windowMs = commandLine.positive('seconds', values.seconds) * 1_000
const rounds = commandLine.positive('rounds', values.rounds)
const rows = commandLine.positive('millions', values.millions) * 1_000_000
const minutes = commandLine.positive('minutes', values.minutes)
const ratePerS = values.rate === undefined ? undefined : commandLine.positive('rate', values.rate)

const RATE_PER_S = 1_000
const WAIT_RATES_PER_S = [2_000, 20_000]
const CONNECTIONS = 64
const SEED = 42
const WARM_UP_MS = 4_000
const DRAIN_DEADLINE_MS = 120_000
const TAILS = 100
const SHOWN_MINUTES = new Set([1, 5])
const MINUTE_MS = 60_000
const RETRY_MS = 1_000

const supervisor = new Supervisor()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void supervisor.stop({ force: true }).finally(() => process.exit(1)))
const load = new LoadProcess()
const installation = await startInstallation({ supervisor, query: {} })
const { queryUrl = '', readKey = '', apiUrl, apiKey, processes } = installation
const target = { queryUrl, readKey, url: `${apiUrl}/v1/logs`, apiKey }
const store = new Store(installation.clickhouse)
const print = (lines: readonly (readonly string[])[]): void =>
  console.log(`\n${alignColumns(lines).join('\n')}`)
try {
  await load.prepare({ url: target.url, apiKey, requests: [{ share: 1, entries: 100 }], seed: SEED })
  await send(WARM_UP_MS, WAIT_RATES_PER_S[0])
  const measures: Readonly<Record<Part, () => Promise<void>>> = { wait, cost, scan, memory }
  for (const part of chosen) await measures[part]()
} finally {
  await load.stop()
  await store.close()
  await supervisor.stop()
}
process.exit()

/** @param perS undefined: as many entries as possible */
function send(durationMs: number, perS: number | undefined) {
  const options = { connections: CONNECTIONS, durationMs }
  return load.run(
    perS === undefined ? { ...options, loop: 'closed' } : { ...options, loop: 'open', entriesPerS: perS },
  )
}

async function wait(): Promise<void> {
  const lines = [['202 to viewer', 'ms', 'p50', 'p99', 'max']]
  for (const perS of WAIT_RATES_PER_S) {
    const sending = send(windowMs, perS)
    const { p50Ms, p99Ms, maxMs } = await probeTail(target, windowMs)
    await sending
    lines.push([
      `at ${formatNumber(perS, 0)}/s`,
      '',
      ...[p50Ms, p99Ms, maxMs].map((ms) => formatNumber(ms, 0)),
    ])
  }
  print(lines)
}

async function cost(): Promise<void> {
  const lines = [['tails', '', 'ClickHouse, ms of CPU/s', 'query process']]
  for (const count of [0, 1, TAILS]) {
    const close = await openViewers(target, { count })
    const pids = [processes.clickhouse, processes.query].map((each) => each?.pid ?? 0)
    const before = pids.map(cpuMs)
    await send(windowMs, ratePerS ?? RATE_PER_S)
    const used = pids.map((pid, i) => ((cpuMs(pid) - (before[i] ?? 0)) * 1_000) / windowMs)
    lines.push([String(count), '', ...used.map((ms) => formatNumber(ms, 0))])
    close()
  }
  print(lines)
}

async function scan(): Promise<void> {
  await command(installation.clickhouse, aDay(installation.projectId, rows))
  // The first rows are stored a quarter faster: their merges come later.
  await send(2 * windowMs, ratePerS)
  const lines = [
    ['clients that search', '', 'accepted/s', 'stored/s', 'ack p50, ms', 'p99', 'searches/s', 'p50, ms'],
  ]
  for (let round = 0; round < rounds; round += 1)
    for (const clients of [0, 1, 4]) {
      const scanning = scanAllDay(target, clients)
      const [atStart, startedMs] = [await store.count(), performance.now()]
      const result = await send(windowMs, ratePerS)
      const signal = AbortSignal.timeout(DRAIN_DEADLINE_MS)
      await store.waitForCount(atStart + result.accepted, { deadlineMs: DRAIN_DEADLINE_MS, signal })
      const seconds = (performance.now() - startedMs) / 1_000
      const { searches, p50Ms } = await scanning.stop()
      const { p50, p99 } = result.latencyMs
      const rates = [acceptedPerS(result), result.accepted / seconds].map((perS) => formatNumber(perS, 0))
      const times = [p50, p99, searches / seconds].map((value) => formatNumber(value, 1))
      lines.push([String(clients), '', ...rates, ...times, formatNumber(p50Ms, 0)])
    }
  print(lines)
}

async function memory(): Promise<void> {
  const { redisUrl, prefix, readAccess: clickhouse = installation.clickhouse } = installation
  const kinds = [
    { name: 'one tail', count: 1 },
    { name: `${TAILS} tails`, count: TAILS },
    { name: `${TAILS} that are not read`, count: TAILS, reads: false },
  ]
  const measured = await Promise.all(
    kinds.map(async ({ name, ...viewers }, i) => {
      const port = await supervisor.ports.free()
      const options = { redisUrl, prefix, clickhouse, name: `query-${i + 2}`, environment: inspectedAt(port) }
      const { process: started, url } = await startQuery(supervisor, options)
      let close = await openViewers({ queryUrl: url, readKey }, viewers)
      const again = async (): Promise<void> => {
        close()
        close = await openViewers({ queryUrl: url, readKey }, viewers)
      }
      return { name, port, pid: started.pid ?? 0, again }
    }),
  )
  const cells = [['', '', ...measured.map(({ name }) => name)]]
  for (let minute = 1; minute <= minutes; minute += 1) {
    // The process disconnects those that do not read, after a minute and a half.
    for (const { again } of measured) await again()
    for (const endMs = performance.now() + MINUTE_MS; performance.now() < endMs;)
      // A load that was interrupted goes on: what is measured here are the viewers.
      await send(endMs - performance.now(), ratePerS ?? RATE_PER_S).catch(() => delay(RETRY_MS))
    const shown = SHOWN_MINUTES.has(minute) || minute === minutes
    const line = [`minute ${minute}`, 'MB: heap, RSS']
    for (const { port, pid } of measured) {
      if (!shown) continue
      const heapMb = (await inspectedHeapBytes(port)) / 2 ** 20
      line.push(`${formatNumber(heapMb, 1)}, ${formatNumber(sizeOf([pid]).residentBytes / 2 ** 20, 0)}`)
    }
    if (shown) cells.push(line)
    if (shown) process.stderr.write(`${line.join('  ')}\n`)
  }
  print(cells)
}

/** Inserts entries of the last day into a project. */
function aDay(projectId: string, count: number): string {
  const at = `now64(6, 'UTC') - toIntervalMicrosecond(number * ${Math.floor(86_400_000_000 / count)})`
  return `INSERT INTO ${logsTable} (id, project_id, timestamp, received_at, expires_on, level, service, message, metadata_text)
    SELECT generateUUIDv7(number), '${projectId}', ${at}, ${at}, today() + 30, if(r % 41 = 0, 'error', 'info'),
      concat('service-', toString(r % 24)), concat('request ', hex(r), ' of user ', toString(r % 400009), ' took ', toString(r % 9973), ' ms'),
      concat('{"requestId":"', hex(r), '","durationMs":', toString(r % 9973), ',"host":"app-', toString(r % 41), '"}')
    FROM (SELECT number, cityHash64(number) AS r FROM numbers(${count}))`
}
