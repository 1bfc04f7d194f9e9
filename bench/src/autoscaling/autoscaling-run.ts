import { migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import { pause } from '@sluice/harness'
import { ClickHouseGate } from '@sluice/harness/clickhouse-gate'
import { type Samples, scrape, sumOf } from '@sluice/harness/metrics'
import {
  type ApiApp,
  type App,
  provisionProject,
  type Services,
  startApi,
  startServices,
  startWorker,
  type Supervisor,
  withRegistry,
} from '@sluice/local'
import { LoadProcess } from '../load/load-process.ts'
import { acceptedPerS } from '../load/protocol.ts'
import { Store } from '../measure/store.ts'
import { type QueueSignals, ScalingRule, type ScalingTargets } from './scaling-rule.ts'

export interface AutoscalingOptions {
  /** ms by which each insert is delayed. Two inserts per worker are in flight, so this limits what a worker stores. */
  readonly insertDelayMs: number
  readonly batchRowsMax: number
  readonly workersMax: number
  /** How many times faster than in the Helm chart everything happens: the age, the interval and the time before a worker stops. */
  readonly speed: number
}

/** One interval between two decisions. */
export interface AutoscalingSample {
  readonly atS: number
  readonly phase: string
  readonly acceptedPerS: number
  /** Requests without a 202. */
  readonly rejected: number
  readonly ackP99Ms: number
  readonly signals: QueueSignals | undefined
  /** Chunks that no worker has, and those that one has. */
  readonly waitingChunks: number
  readonly heldChunks: number
  readonly workers: number
  readonly requested: number
}

export interface AutoscalingReport {
  /** What each of all workers stored per second before the ramp. */
  readonly workerRowsPerS: number
  readonly targets: ScalingTargets
  readonly accepted: number
  /** Rows in ClickHouse, and their different ids. */
  readonly stored: number
  readonly distinct: number
  /** From the last request until everything was stored. */
  readonly drainMs: number
}

interface Phase {
  readonly name: string
  /** The share of what all workers together can store. */
  readonly share: number
  readonly intervals: number
}

/** `oldestAgeSeconds`, `pollingIntervalSeconds`, `scaleDownSeconds` and `minReplicas` of the Helm chart. */
const chart = { oldestAgeS: 60, pollingIntervalMs: 15_000, scaleDownMs: 300_000, workersMin: 2 } as const
/** As in the comment on `rowsWaiting` in the Helm chart: about two seconds of a worker. */
const ROWS_WAITING_S = 2
const PREFIX = 'autoscaling'
const SEED = 42
const CONNECTIONS = 24
const CALIBRATION_MS = 15_000
/** Of what the workers store if inserts take no longer than the delay. */
const CALIBRATION_OVERLOAD = 1.2
/** By then both insert slots of each worker are in use. */
const CALIBRATION_WARM_UP_MS = 5_000
const DRAIN_DEADLINE_MS = 300_000
const INSERT_SLOTS = 2

const ramp = Array.from({ length: 10 }, (_, step): Phase => {
  const share = (step + 1) / 10
  return { name: `ramp ${Math.round(share * 100)} %`, share, intervals: 4 }
})
const phases: readonly Phase[] = [
  ...ramp,
  { name: 'burst 150 %', share: 1.5, intervals: 5 },
  { name: 'after 50 %', share: 0.5, intervals: 12 },
  { name: 'calm 10 %', share: 0.1, intervals: 40 },
]

/**
 * Sends a ramp, a burst and a calm, and starts and stops worker processes as KEDA would do by `/metrics`.
 *
 * @throws NotDrainedError when accepted entries are not stored within five minutes after the end
 */
export async function runAutoscaling(
  options: AutoscalingOptions,
  supervisor: Supervisor,
  onSample: (sample: AutoscalingSample) => void,
): Promise<AutoscalingReport> {
  const services = await startServices({ supervisor })
  const gate = await ClickHouseGate.open(services.clickhouse.url)
  const store = new Store(services.clickhouse)
  const load = new LoadProcess()
  try {
    await migrate(services.clickhouse, await readMigrations(migrationsFolder))
    const apiKey = await withRegistry({ redisUrl: services.redisUrl, prefix: PREFIX }, (registry) =>
      provisionProject(registry, PREFIX),
    )
    const api = await startApi(supervisor, { redisUrl: services.redisUrl, prefix: PREFIX })
    const url = `${api.url}/v1/logs`
    await load.prepare({
      url,
      apiKey,
      requests: [{ share: 1, entries: 100 }],
      corpus: undefined,
      seed: SEED,
    })
    gate.insertDelayMs = options.insertDelayMs
    const run = new AutoscalingRun({ services, gate, api, load, options })
    const workerRowsPerS = await run.calibrate()
    await store.waitForCount(run.accepted, drainOptions())
    const targets: ScalingTargets = {
      oldestAgeS: chart.oldestAgeS / options.speed,
      rowsPerWorker: Math.round(ROWS_WAITING_S * workerRowsPerS),
      workersMin: chart.workersMin,
      workersMax: options.workersMax,
      scaleDownMs: chart.scaleDownMs / options.speed,
    }
    await run.follow(targets, workerRowsPerS * options.workersMax, onSample)
    const endedAtMs = performance.now()
    const stored = await store.waitForCount(run.accepted, drainOptions())
    const [ids] = await store.select<{ distinct: string }>('SELECT uniqExact(id) AS distinct FROM logs')
    return {
      workerRowsPerS,
      targets,
      accepted: run.accepted,
      stored,
      distinct: Number(ids?.distinct),
      drainMs: performance.now() - endedAtMs,
    }
  } finally {
    await load.stop()
    await store.close()
    await services.stop()
    await gate.close()
  }
}

function drainOptions(): { deadlineMs: number; signal: AbortSignal } {
  return { deadlineMs: DRAIN_DEADLINE_MS, signal: new AbortController().signal }
}

interface Parts {
  readonly services: Services
  readonly gate: ClickHouseGate
  readonly api: ApiApp
  readonly load: LoadProcess
  readonly options: AutoscalingOptions
}

class AutoscalingRun {
  accepted = 0
  readonly #parts: Parts
  readonly #workers: App[] = []
  /** Starts and stops that have begun. */
  readonly #changes: Promise<unknown>[] = []
  #started = 0
  /** Workers that are not ready yet. */
  #starting = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Saturates all workers. @returns the rows that each of them stores per second */
  async calibrate(): Promise<number> {
    const { gate, load, options } = this.#parts
    await Promise.all(Array.from({ length: options.workersMax }, () => this.#startWorker()))
    const workerPerS = (INSERT_SLOTS * options.batchRowsMax * 1_000) / options.insertDelayMs
    const sending = load.run({
      loop: 'open',
      connections: CONNECTIONS,
      durationMs: CALIBRATION_MS,
      entriesPerS: CALIBRATION_OVERLOAD * workerPerS * options.workersMax,
    })
    await pause(CALIBRATION_WARM_UP_MS)
    const [before, fromMs] = [gate.acknowledged.length, performance.now()]
    const { accepted } = await sending
    this.accepted += accepted
    const rows = gate.acknowledged.slice(before).reduce((sum, insert) => sum + insert.rows, 0)
    return Math.round((rows * 1_000) / (performance.now() - fromMs) / options.workersMax)
  }

  /** Runs the phases. @param capacityPerS what all workers together can store */
  async follow(
    targets: ScalingTargets,
    capacityPerS: number,
    onSample: (sample: AutoscalingSample) => void,
  ): Promise<void> {
    const { load, options } = this.#parts
    const rule = new ScalingRule(targets)
    this.#change(targets.workersMin)
    const startedAtMs = performance.now()
    for (const { name, share, intervals } of phases) {
      for (let interval = 0; interval < intervals; interval += 1) {
        const result = await load.run({
          loop: 'open',
          connections: CONNECTIONS,
          durationMs: chart.pollingIntervalMs / options.speed,
          entriesPerS: share * capacityPerS,
        })
        this.accepted += result.accepted
        const { signals, waitingChunks, heldChunks } = await this.#readQueue()
        const workers = this.#workers.length
        const requested = rule.decide(signals, workers, performance.now())
        onSample({
          atS: Math.round((performance.now() - startedAtMs) / 1_000),
          phase: name,
          acceptedPerS: acceptedPerS(result),
          rejected: Object.values(result.rejected).reduce((sum, count) => sum + count, 0),
          ackP99Ms: result.latencyMs.p99,
          signals,
          waitingChunks,
          heldChunks,
          workers,
          requested,
        })
        this.#change(requested)
      }
    }
    await Promise.all(this.#changes)
  }

  /** Begins to start or stop workers. The load does not wait for them. */
  #change(requested: number): void {
    for (let missing = requested - this.#workers.length - this.#starting; missing > 0; missing -= 1)
      this.#changes.push(this.#startWorker())
    for (const { process } of this.#workers.splice(requested)) this.#changes.push(process.stop())
  }

  async #startWorker(): Promise<void> {
    const { services, gate, options } = this.#parts
    this.#started += 1
    this.#starting += 1
    const worker = await startWorker(services.supervisor, {
      redisUrl: services.redisUrl,
      prefix: PREFIX,
      name: `worker-${this.#started}`,
      clickhouse: { ...services.clickhouse, url: gate.url },
      environment: { BATCH_ROWS_MAX: String(options.batchRowsMax) },
    })
    this.#starting -= 1
    this.#workers.push(worker)
  }

  /** The signals are undefined if no process exports the state of the queue. */
  async #readQueue(): Promise<Pick<AutoscalingSample, 'signals' | 'waitingChunks' | 'heldChunks'>> {
    const opsUrls = [this.#parts.api, ...this.#workers].map(({ opsUrl }) => opsUrl)
    const pages = await Promise.all(opsUrls.map(scrape))
    const exporting = pages.filter((page) => hasSeries(page, 'sluice_queue_rows'))
    // One shard, so that each sum has one series.
    const highest = (metric: string, label = ''): number =>
      Math.max(0, ...exporting.map((page) => sumOf([page], metric, label)))
    return {
      signals:
        exporting.length === 0
          ? undefined
          : { oldestAgeS: highest('sluice_queue_oldest_age_seconds'), rows: highest('sluice_queue_rows') },
      waitingChunks: highest('sluice_queue_chunks', 'state="waiting"'),
      heldChunks: highest('sluice_queue_chunks', 'state="in_hand"'),
    }
  }
}

function hasSeries(page: Samples, metric: string): boolean {
  return page.keys().some((series) => series.startsWith(`${metric}{`))
}
