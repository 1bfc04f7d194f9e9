// `npm run lab -- clients`: what clients of different numbers and rates get, and what their chunks cost.
import { CommandLine } from '@sluice/harness/command-line'
import { Supervisor } from '@sluice/local'
import { LoadProcess } from '../load/load-process.ts'
import { acceptedPerS, describeRejected, type LoadResult, type Progress } from '../load/protocol.ts'
import { ProcessMeter, totalCpuMs } from '../measure/process-meter.ts'
import { redisCounter, redisUsedBytes } from '../measure/redis-info.ts'
import { Store } from '../measure/store.ts'
import { readNames } from '../options.ts'
import { BacklogWatch } from '../phases/backlog-watch.ts'
import { alignColumns, formatNumber } from '../report.ts'
import { startSluice, type System } from '../systems.ts'

/** Clients that send their next request when they have the response to the last one. */
interface ClientLoad {
  readonly name: string
  readonly connections: number
  readonly entriesPerRequest: number
}

const clientLoads: readonly ClientLoad[] = [
  { name: '1', connections: 1, entriesPerRequest: 1 },
  { name: '16', connections: 16, entriesPerRequest: 1 },
  { name: '64', connections: 64, entriesPerRequest: 1 },
  { name: '256', connections: 256, entriesPerRequest: 1 },
  { name: '64x100', connections: 64, entriesPerRequest: 100 },
]
const SEED = 42
/** In the first seconds under load the JIT compiles the hot functions, and ClickHouse starts its threads. */
const WARM_UP_MS = 3_000
/** Long enough for some thousand chunks. */
const QUEUE_FILL_MS = 2_000
const DRAIN_DEADLINE_MS = 60_000
/** BullMQ counts the jobs here that were ever added to the queue. */
const COUNTER = '{sluice}:logs:id'
const columns = [
  'requests/s',
  'stored/s',
  'p50 ms',
  'p99 ms',
  'chunks/s',
  'rows/chunk',
  'CPU µs/entry: API',
  'Redis',
  'all',
  'cores: Redis',
  'generator',
  'others',
  'Redis B/entry',
]

const commandLine = new CommandLine(`npm run lab -- clients [options]

  --load NAMES   ${clientLoads.map(({ name }) => name).join(',')}: connections, or connections x entries per request; default all
  --seconds N    length of each measurement window; default 5
  --help         prints this text
`)
const values = commandLine.read({
  load: { type: 'string', multiple: true },
  seconds: { type: 'string', default: '5' },
})
const loads = readNames(commandLine, '--load', values.load, clientLoads, ({ name }) => name)
const windowMs = commandLine.positive('seconds', values.seconds) * 1_000

let running: Supervisor | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void running?.stop({ force: true }).finally(() => process.exit(1)))
}
const rows: string[][] = [['load', 'rejected', ...columns]]
for (const load of loads) {
  console.error(load.name)
  const supervisor = await Supervisor.open()
  running = supervisor
  const generator = new LoadProcess()
  try {
    rows.push(await measure(await startSluice({ supervisor }), generator, load))
  } finally {
    await generator.stop()
    await supervisor.stop()
  }
}
console.log(alignColumns(rows).join('\n'))
process.exit()

/** Measures Sluice, freshly started, under one load. @returns the cells of its row */
async function measure(system: System, generator: LoadProcess, load: ClientLoad): Promise<string[]> {
  const { url, apiKey, redisUrl } = system
  const store = new Store(system.clickhouse)
  const requests = [{ share: 1, entries: load.entriesPerRequest }]
  await generator.prepare({ url, apiKey, requests, seed: SEED })
  const send = (durationMs: number, onProgress?: (progress: Progress) => void): Promise<LoadResult> =>
    generator.run({ loop: 'closed', connections: load.connections, durationMs }, onProgress)
  const drain = async ({ accepted }: LoadResult): Promise<void> => {
    const signal = new AbortController().signal
    await store.waitForCount(accepted, { deadlineMs: DRAIN_DEADLINE_MS, signal })
  }

  await drain(await send(WARM_UP_MS))
  await store.clear()
  const chunksBefore = await redisCounter(redisUrl, COUNTER)
  const backlog = new BacklogWatch(store)
  const meter = new ProcessMeter(system.pids())
  const result = await send(windowMs, backlog.recordAccepted)
  await backlog.stop()
  const inWindow = meter.read(result.cpuMs)
  await drain(result)
  const { usage } = meter.read(result.cpuMs)
  const chunks = (await redisCounter(redisUrl, COUNTER)) - chunksBefore

  await store.clear()
  await system.worker.stop()
  const usedBefore = await redisUsedBytes(redisUrl)
  const queued = await send(QUEUE_FILL_MS)
  const queuedBytes = (await redisUsedBytes(redisUrl)) - usedBefore
  await system.worker.start()
  await drain(queued)
  await store.close()

  const perEntryUs = (cpuMs: number): number => (cpuMs * 1_000) / result.accepted
  const figures: readonly (readonly [value: number, digits: number])[] = [
    [acceptedPerS(result) / load.entriesPerRequest, 0],
    [backlog.steadyRates(result.startedAtMs, result.windowMs).storedPerS, 0],
    [result.latencyMs.p50, 2],
    [result.latencyMs.p99, 1],
    [(chunks / result.windowMs) * 1_000, 0],
    [result.accepted / chunks, 1],
    [perEntryUs(usage.api.cpuMs), 1],
    [perEntryUs(usage.redis.cpuMs), 1],
    [perEntryUs(totalCpuMs(usage)), 1],
    [inWindow.usage.redis.cpuMs / result.windowMs, 2],
    [result.cpuMs / result.windowMs, 2],
    [inWindow.othersCores, 2],
    [queuedBytes / queued.accepted, 0],
  ]
  return [
    load.name,
    describeRejected(result),
    ...figures.map(([value, digits]) => formatNumber(value, digits)),
  ]
}
