import { installationNames, type Metrics, redisServers } from '@sluice/runtime'
import { Heartbeat, type HeartbeatOptions } from './heartbeat.ts'
import { QueueGauge, type QueueGaugeOptions } from './queue-gauge.ts'
import { exportQueues } from './queue-metrics.ts'
import { QueueReporter } from './queue-reporter.ts'
import type { ShardCount } from './shard-count.ts'

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
    this.#reporter.start()
    this.#heartbeat.start()
  }

  /** Never rejects, and waits for Redis no longer than `heartbeatLimits.removalWaitMs`. */
  async stop(): Promise<void> {
    this.#reporter.stop()
    await this.#heartbeat.stop()
  }
}
