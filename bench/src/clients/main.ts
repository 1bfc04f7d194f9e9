// `npm run lab -- clients`: what clients of different numbers and rates get, and what their chunks cost.
import { CommandLine } from '@sluice/harness/command-line'
import { Supervisor } from '@sluice/local'
import { LoadProcess } from '../load/load-process.ts'
import { acceptedPerS, describeRejected, type LoadResult } from '../load/protocol.ts'
import { ProcessMeter, totalCpuMs } from '../measure/process-meter.ts'
import { redisCounter } from '../measure/redis-info.ts'
import { Store } from '../measure/store.ts'
import { readNames } from '../options.ts'
import { alignColumns, formatNumber } from '../report.ts'
import { startSluice, type System } from '../systems.ts'

/** Clients that send their next request when they have the response to the last one: their number, and entries per request. */
const loads = ['1x1', '16x1', '64x1', '256x1', '4x100', '64x100']
const SEED = 42
/** In the first seconds under load the JIT compiles the hot functions, and ClickHouse starts its threads. */
const WARM_UP_MS = 3_000
const DRAIN_DEADLINE_MS = 60_000
/** BullMQ counts the jobs here that were ever added to the queue. */
const COUNTER = '{sluice}:logs:id'

const commandLine = new CommandLine(`npm run lab -- clients [options]

  --load NAMES   ${loads.join(',')}: connections x entries per request; default all
  --seconds N    length of each measurement window; default 5
  --help         prints this text
`)
const values = commandLine.read({
  load: { type: 'string', multiple: true },
  seconds: { type: 'string', default: '5' },
})
const names = readNames(commandLine, '--load', values.load, loads)
const windowMs = commandLine.positive('seconds', values.seconds) * 1_000

let running: Supervisor | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void running?.stop({ force: true }).finally(() => process.exit(1)))
}
const header = ['load', 'rejected', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs/entry', 'rows/chunk']
const rows = [header]
for (const name of names) {
  console.error(name)
  const supervisor = new Supervisor()
  running = supervisor
  const generator = new LoadProcess()
  try {
    rows.push([name, ...(await measure(await startSluice({ supervisor }), generator, name))])
  } finally {
    await generator.stop()
    await supervisor.stop()
  }
}
console.log(alignColumns(rows).join('\n'))
process.exit()

/** Measures Sluice, freshly started, under one load. @returns the cells of its row */
async function measure(system: Required<System>, generator: LoadProcess, load: string): Promise<string[]> {
  const [connections = 0, entriesPerRequest = 0] = load.split('x').map(Number)
  const { url, apiKey, redisUrl } = system
  const store = new Store(system.clickhouse)
  await generator.prepare({ url, apiKey, requests: [{ share: 1, entries: entriesPerRequest }], seed: SEED })
  const sendAndStore = async (durationMs: number): Promise<LoadResult> => {
    const result = await generator.run({ loop: 'closed', connections, durationMs })
    const signal = new AbortController().signal
    await store.waitForCount(result.accepted, { deadlineMs: DRAIN_DEADLINE_MS, signal })
    return result
  }
  await sendAndStore(WARM_UP_MS)
  await store.clear()
  const chunksBefore = await redisCounter(redisUrl, COUNTER)
  const meter = new ProcessMeter(system.pids())
  const result = await sendAndStore(windowMs)
  const { usage } = meter.read(result.cpuMs)
  const chunks = (await redisCounter(redisUrl, COUNTER)) - chunksBefore
  await store.close()
  return [
    describeRejected(result),
    formatNumber(acceptedPerS(result) / entriesPerRequest, 0),
    formatNumber(result.latencyMs.p50, 2),
    formatNumber(result.latencyMs.p99, 1),
    formatNumber((totalCpuMs(usage) * 1_000) / result.accepted, 1),
    formatNumber(result.accepted / chunks, 1),
  ]
}
