import type { ShardCount } from '@sluice/queue'
import { installationNames, type ProcessLogger, type Readiness, redisServers } from '@sluice/runtime'
import type { Dependencies } from './dependencies.ts'
import { Heartbeat, type HeartbeatOptions } from './heartbeat.ts'
import type { Metrics } from './metrics.ts'
import { QueueGauge, type QueueGaugeOptions } from './queue-gauge.ts'
import { exportQueues, QueueReporter } from './queue-reporter.ts'

export interface ReportingOptions
  extends HeartbeatOptions, Pick<QueueGaugeOptions, 'memoryBytes' | 'wallMs'> {
  readonly shards: ShardCount
  readonly metrics: Metrics
}

/**
 * What each process reports to operators next to its own metrics: the state of the queues, as metrics, and itself, for
 * `sluice status`.
 */
export class Reporting {
  readonly gauge: QueueGauge
  readonly #reporter: QueueReporter
  readonly #heartbeat: Heartbeat

  constructor(options: ReportingOptions) {
    const { redis, prefix, metrics } = options
    this.gauge = new QueueGauge({ ...options, servers: () => redisServers(redis) })
    this.#reporter = new QueueReporter({
      ...options,
      gauge: this.gauge,
      leaseKey: installationNames(prefix).reporterKey,
    })
    this.#heartbeat = new Heartbeat(options)
    exportQueues(metrics, this.#reporter)
  }

  start(): void {
    this.#heartbeat.start()
    this.#reporter.start()
  }

  /** Never rejects, and waits for Redis no longer than `heartbeatLimits.removalWaitMs`. */
  async stop(): Promise<void> {
    this.#reporter.stop()
    await this.#heartbeat.leave()
  }
}

export interface ProcessState {
  readonly readiness: () => Readiness
  readonly dependencies: Pick<Dependencies, 'status'>
  readonly registry: { readonly readiness: Readiness }
  readonly logger: Pick<ProcessLogger, 'logLinesDropped'>
}

/** Exports the state of a process. docs/metrics.md describes each metric. */
export function exportProcess(
  metrics: Metrics,
  { readiness, dependencies, registry, logger }: ProcessState,
): void {
  metrics.gauge({ name: 'sluice_ready', help: '1 if /readyz answers 200.' }, () => Number(readiness().ready))
  metrics.gauge(
    { name: 'sluice_dependency_up', help: '1 if the dependency works.', labels: ['dependency'] },
    () => dependencies.status.map(({ name, state }) => [[name], Number(state === 'up')]),
  )
  metrics.gauge(
    { name: 'sluice_registry_lost', help: '1 if Redis has lost its projects, or has others.' },
    () => Number(!registry.readiness.ready),
  )
  metrics.counter(
    { name: 'sluice_log_lines_dropped_total', help: 'Repeated log lines that were not written.' },
    () => logger.logLinesDropped,
  )
}
