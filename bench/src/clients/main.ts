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

const clientLoads: readonly ClientLoad[] = [1, 16, 64, 256, '64x100'].map((load) => {
  const [connections = 0, entriesPerRequest = 1] = String(load).split('x').map(Number)
  return { name: String(load), connections, entriesPerRequest }
})
const SEED = 42
/** In the first seconds under load the JIT compiles the hot functions, and ClickHouse starts its threads. */
const WARM_UP_MS = 3_000
/** Long enough for some thousand chunks. */
const QUEUE_FILL_MS = 2_000
const DRAIN_DEADLINE_MS = 60_000
/** BullMQ counts the jobs here that were ever added to the queue. */
const COUNTER = '{sluice}:logs:id'

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
const rows: (readonly (readonly [column: string, cell: string])[])[] = []
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
const [first = []] = rows
const cells = rows.map((row) => row.map(([, cell]) => cell))
console.log(alignColumns([first.map(([column]) => column), ...cells]).join('\n'))
process.exit()

/** Measures Sluice, freshly started, under one load. @returns the columns of its row, and their cells */
async function measure(
  system: Required<System>,
  generator: LoadProcess,
  load: ClientLoad,
): Promise<readonly (readonly [column: string, cell: string])[]> {
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
  const figures: readonly (readonly [column: string, value: number, digits: number])[] = [
    ['requests/s', acceptedPerS(result) / load.entriesPerRequest, 0],
    ['stored/s', backlog.steadyRates(result.startedAtMs, result.windowMs).storedPerS, 0],
    ['p50 ms', result.latencyMs.p50, 2],
    ['p99 ms', result.latencyMs.p99, 1],
    ['chunks/s', (chunks / result.windowMs) * 1_000, 0],
    ['rows/chunk', result.accepted / chunks, 1],
    ['CPU µs/entry: API', perEntryUs(usage.api.cpuMs), 1],
    ['Redis', perEntryUs(usage.redis.cpuMs), 1],
    ['all', perEntryUs(totalCpuMs(usage)), 1],
    ['cores: Redis', inWindow.usage.redis.cpuMs / result.windowMs, 2],
    ['generator', result.cpuMs / result.windowMs, 2],
    ['others', inWindow.othersCores, 2],
    ['Redis B/entry', queuedBytes / queued.accepted, 0],
  ]
  return [
    ['load', load.name],
    ['rejected', describeRejected(result)],
    ...figures.map(([column, value, digits]) => [column, formatNumber(value, digits)] as const),
  ]
}
