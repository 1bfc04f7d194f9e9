import type { Supervisor } from '@sluice/local'
import { LoadProcess } from '../load/load-process.ts'
import { acceptedPerS, describeRejected, type LoadResult } from '../load/protocol.ts'
import { ProcessMeter, totalCpuMs } from '../measure/process-meter.ts'
import { redisCounter, redisUsedBytes } from '../measure/redis-info.ts'
import { Store } from '../measure/store.ts'
import { BacklogWatch } from '../phases/backlog-watch.ts'
import { startSluice } from '../systems/sluice.ts'
import type { System } from '../systems/system.ts'
import type { ClientLoad } from './client-loads.ts'

/** What was measured under one load. */
export interface ClientFigures {
  readonly load: string
  readonly requestsPerS: number
  /** In the last two thirds of the window. */
  readonly storedPerS: number
  readonly ackP50Ms: number
  readonly ackP99Ms: number
  readonly chunksPerS: number
  readonly rowsPerChunk: number
  /** CPU time per entry, until all entries were stored. */
  readonly cpuUs: { readonly api: number; readonly redis: number; readonly all: number }
  /** Shares of one core during the window. */
  readonly redisCores: number
  readonly generatorCores: number
  readonly othersCores: number
  readonly redisBytesPerEntry: number
  /** Requests without a 202, as text. */
  readonly rejected: string
}

const SEED = 42
/** In the first seconds under load the JIT compiles the hot functions, and ClickHouse starts its threads. */
const WARM_UP_MS = 3_000
/** Long enough for some thousand chunks. */
const QUEUE_FILL_MS = 2_000
const DRAIN_DEADLINE_MS = 60_000
/** BullMQ counts the jobs here that were ever added to the queue. */
const COUNTER = '{sluice}:logs:id'

interface Clients {
  readonly system: System
  readonly redisUrl: string
  readonly store: Store
  readonly generator: LoadProcess
  readonly windowMs: number
}

/** Measures Sluice, freshly started, under one load. */
export async function measureClients(
  supervisor: Supervisor,
  load: ClientLoad,
  windowMs: number,
): Promise<ClientFigures> {
  const system = await startSluice({ supervisor, profile: undefined })
  const { redisUrl = '', url, apiKey } = system
  const store = new Store(system.clickhouse)
  const generator = new LoadProcess()
  try {
    await generator.prepare({
      url,
      apiKey,
      requests: [{ share: 1, entries: load.entriesPerRequest }],
      corpus: undefined,
      seed: SEED,
    })
    return await measure({ system, redisUrl, store, generator, windowMs }, load)
  } finally {
    await generator.stop()
    await store.close()
  }
}

async function measure(clients: Clients, load: ClientLoad): Promise<ClientFigures> {
  const { system, redisUrl, store } = clients
  await drain(clients, await send(clients, load, WARM_UP_MS))
  await store.clear()
  const chunksBefore = await redisCounter(redisUrl, COUNTER)
  const backlog = new BacklogWatch(store)
  const meter = new ProcessMeter(system.pids())
  const result = await watch(clients, load, backlog)
  const inWindow = meter.read(result.cpuMs)
  await drain(clients, result)
  const { usage } = meter.read(result.cpuMs)
  const chunks = (await redisCounter(redisUrl, COUNTER)) - chunksBefore
  const perEntryUs = (cpuMs: number): number => (cpuMs * 1_000) / result.accepted
  return {
    load: load.name,
    requestsPerS: acceptedPerS(result) / load.entriesPerRequest,
    storedPerS: backlog.steadyRates(result.startedAtMs, result.windowMs).storedPerS,
    ackP50Ms: result.latencyMs.p50,
    ackP99Ms: result.latencyMs.p99,
    chunksPerS: (chunks / result.windowMs) * 1_000,
    rowsPerChunk: result.accepted / chunks,
    cpuUs: {
      api: perEntryUs(usage.api.cpuMs),
      redis: perEntryUs(usage.redis?.cpuMs ?? 0),
      all: perEntryUs(totalCpuMs(usage)),
    },
    redisCores: (inWindow.usage.redis?.cpuMs ?? 0) / result.windowMs,
    generatorCores: result.cpuMs / result.windowMs,
    othersCores: inWindow.othersCores,
    rejected: describeRejected(result),
    redisBytesPerEntry: await measureQueueMemory(clients, load),
  }
}

async function watch(clients: Clients, load: ClientLoad, backlog: BacklogWatch): Promise<LoadResult> {
  try {
    return await send(clients, load, clients.windowMs, backlog)
  } finally {
    await backlog.stop()
  }
}

async function measureQueueMemory(clients: Clients, load: ClientLoad): Promise<number> {
  const { system, redisUrl, store } = clients
  await store.clear()
  await system.worker?.stop()
  const before = await redisUsedBytes(redisUrl)
  const result = await send(clients, load, QUEUE_FILL_MS)
  const after = await redisUsedBytes(redisUrl)
  await system.worker?.start()
  await drain(clients, result)
  return (after - before) / result.accepted
}

function send(
  { generator }: Clients,
  { connections }: ClientLoad,
  durationMs: number,
  backlog?: BacklogWatch,
): Promise<LoadResult> {
  const options = { loop: 'closed', connections, durationMs, entriesMax: undefined } as const
  return generator.run(options, backlog?.recordAccepted)
}

async function drain({ store }: Clients, { accepted }: LoadResult): Promise<void> {
  await store.waitForCount(accepted, {
    deadlineMs: DRAIN_DEADLINE_MS,
    signal: new AbortController().signal,
  })
}
