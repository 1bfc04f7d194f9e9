// A process that logs through the client, as its only argument says, and prints what it measured.
import { SluiceClient } from '@sluice/client'
import { DiskSpool } from '@sluice/client/spool'

/** How a process with a client logs. */
export interface SenderRun {
  readonly url: string
  readonly apiKey: string
  /** `flood`: without ever waiting. `fill`: whenever the queue has room. */
  readonly pace: 'flood' | 'fill'
  readonly durationMs: number
  /** Undefined without a spool. */
  readonly spoolDirectory: string | undefined
}

/** What a run measured. */
export interface SenderFigures {
  readonly calls: number
  /** How long a call takes. */
  readonly callUs: number
  /** CPU time of the whole process per call: encoding, compression, requests, garbage collection. */
  readonly processUs: number
  readonly accepted: number
  readonly dropped: number
  /** Until everything was acknowledged or given up. */
  readonly elapsedMs: number
  readonly rssMaxBytes: number
}

/** The calls of one iteration of the event loop. There is room for them when the client says so. */
const CALLS_PER_TURN = 100
/** Until then the JIT compiles the hot functions. */
const WARM_UP_CALLS = 50_000
const CLOSE_TIMEOUT_MS = 30_000

const { url, apiKey, pace, durationMs, spoolDirectory } = JSON.parse(process.argv[2] ?? '') as SenderRun
const client = new SluiceClient({
  url,
  apiKey,
  service: 'bench',
  environment: 'production',
  spool: spoolDirectory === undefined ? undefined : new DiskSpool({ directory: spoolDirectory }),
})
let calls = 0
let rssMaxBytes = 0
/** How long the calls of each iteration took. */
let turnsUs: number[] = []

function logTurn(): void {
  const startedAtMs = performance.now()
  for (let i = 0; i < CALLS_PER_TURN; i += 1) {
    calls += 1
    client.info('GET /api/orders/{id} 200', {
      orderId: calls,
      route: '/api/orders/{id}',
      status: 200,
      durationMs: 12.5,
      cached: false,
    })
  }
  turnsUs.push((performance.now() - startedAtMs) * 1_000)
}

async function logFor(isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    if (pace === 'fill') await client.waitForRoom()
    logTurn()
    rssMaxBytes = Math.max(rssMaxBytes, process.memoryUsage.rss())
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
  }
}

await logFor(() => calls >= WARM_UP_CALLS)
if (pace === 'fill') await client.flush()
const before = { ...client.stats, calls }
turnsUs = []
const cpu = process.cpuUsage()
const startedAtMs = performance.now()
await logFor(() => performance.now() - startedAtMs >= durationMs)
await client.close({ timeoutMs: pace === 'fill' ? CLOSE_TIMEOUT_MS : 0 })
const elapsedMs = performance.now() - startedAtMs
const { user, system } = process.cpuUsage(cpu)
const measured = calls - before.calls
const figures: SenderFigures = {
  calls: measured,
  callUs: median(turnsUs) / CALLS_PER_TURN,
  processUs: (user + system) / measured,
  accepted: client.stats.accepted - before.accepted,
  dropped: client.stats.dropped - before.dropped,
  elapsedMs,
  rssMaxBytes,
}
process.stdout.write(JSON.stringify(figures))

/** Unlike the mean, it ignores the iterations that other processes interrupted. */
function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
