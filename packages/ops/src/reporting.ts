import type { ShardCount } from '@sluice/queue'
import {
  type commonSettings,
  type Logger,
  type Readiness,
  type RedisConnection,
  type redisSettings,
  redisServers,
  type SettingsOf,
} from '@sluice/runtime'
import { hostname } from 'node:os'
import { dependencyCheck, type DependencyFailures, redisFailure, withoutSecrets } from './dependencies.ts'
import { Heartbeat, type HeartbeatOptions } from './heartbeat.ts'
import { Metrics } from './metrics.ts'
import { type OpsServerOptions, startOpsServer } from './ops-server.ts'
import { QueueGauge } from './queue-gauge.ts'
import { exportQueues, QueueReporter } from './queue-reporter.ts'

/** Often enough for states that are shown in seconds. A check only reads memory. */
const CHECK_INTERVAL_MS = 1_000

interface Check {
  readonly readiness: Readiness
}

export interface ReportingOptions extends Pick<
  HeartbeatOptions,
  'role' | 'version' | 'processId' | 'work' | 'monotonicMs'
> {
  readonly config: SettingsOf<typeof commonSettings & typeof redisSettings>
  /** Over which the process works. */
  readonly redis: RedisConnection
  /** Over which it reports, if it does not use the other one: this one fails fast and has a command timeout. */
  readonly reportingRedis?: RedisConnection
  readonly shards: ShardCount
  readonly registry: Check
  /** The process is ready while all of these are, the registry, and its connection to Redis. */
  readonly checks: readonly Check[]
  /** Further reasons why it is not ready. */
  readonly reasons?: () => readonly string[]
  /** What it needs besides Redis. */
  readonly dependencies?: () => DependencyFailures
  /** The clock of the chunks' ids. */
  readonly wallMs: () => number
  readonly logger: Logger
}

/** What each process shows operators: its ops server, its metrics and those of the queues, and itself, for `sluice status`. */
export class Reporting {
  readonly metrics: Metrics
  readonly gauge: QueueGauge
  readonly #options: ReportingOptions
  readonly #checkDependencies: ReturnType<typeof dependencyCheck>
  readonly #heartbeat: Heartbeat
  #closeServer: (() => Promise<void>) | undefined
  #timer: NodeJS.Timeout | undefined
  #wasReady = true

  constructor(options: ReportingOptions) {
    const { role: app, version, config, redis, reportingRedis = redis, shards, registry, logger } = options
    const { dependencies = () => ({}), monotonicMs, wallMs } = options
    this.#options = options
    this.metrics = new Metrics({ app, version })
    this.gauge = new QueueGauge({
      redis: reportingRedis,
      servers: () => redisServers(reportingRedis),
      shards,
      memoryBytes: config.REDIS_MEMORY_BYTES,
      wallMs,
    })
    const queues = new QueueReporter({ gauge: this.gauge, monotonicMs, logger })
    this.#heartbeat = new Heartbeat({
      ...options,
      redis: reportingRedis,
      prefix: config.SLUICE_PREFIX,
      host: hostname(),
      pid: process.pid,
      readiness: this.readiness,
      queues,
    })
    const failure = redisFailure(redis)
    const failures = () => ({ redis: failure(), ...dependencies() })
    this.#checkDependencies = dependencyCheck(failures, monotonicMs)
    exportQueues(this.metrics, queues)
    this.metrics.gauge({ name: 'sluice_ready', help: '1 if /readyz answers 200.' }, () =>
      Number(this.readiness().ready),
    )
    this.metrics.gauge(
      { name: 'sluice_registry_lost', help: '1 if Redis has lost its projects, or has others.' },
      () => Number(!registry.readiness.ready),
    )
  }

  readonly readiness = (): Readiness => {
    const { redis, registry, checks, reasons: further = () => [] } = this.#options
    const reasons = [
      ...(redis.status === 'ready' ? [] : [`the connection to Redis is ${redis.status}`]),
      ...[...checks, registry].flatMap((check) => check.readiness.reasons),
      ...further(),
    ]
    return { ready: reasons.length === 0, reasons }
  }

  /** @returns the address of the ops server */
  async start(server: Pick<OpsServerOptions, 'isAlive' | 'pages'> = {}): Promise<string> {
    const { OPS_HOST: host, OPS_PORT: port } = this.#options.config
    this.#checkDependencies()
    // The first time after a second: a process that starts is not ready.
    this.#timer = setInterval(this.#check, CHECK_INTERVAL_MS)
    const { url, close } = await startOpsServer({
      ...server,
      host,
      port,
      readiness: this.readiness,
      dependencies: this.#checkDependencies,
      metrics: this.metrics.page,
    })
    this.#closeServer = close
    this.#heartbeat.start()
    return url
  }

  /** Never rejects, and waits for Redis no longer than `heartbeatLimits.removalWaitMs`. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#closeServer?.()
    await this.#heartbeat.leave()
  }

  readonly #check = (): void => {
    this.#checkDependencies()
    const { ready, reasons } = this.readiness()
    if (ready === this.#wasReady) return
    this.#wasReady = ready
    const { logger } = this.#options
    if (ready) logger.info('ready')
    else logger.error({ reasons: reasons.map(withoutSecrets) }, 'not ready')
  }
}
