import type { Logger, RedisConnection } from '@sluice/runtime'
import { MemoryTrend } from './memory-trend.ts'
import { PeriodicTask } from './periodic-task.ts'
import type { QueueGauge, QueueReading, ServerMemory } from './queue-gauge.ts'
import { DELETE_IF_EQUAL, defineScript, permitWrites, type RedisScript } from './redis-script.ts'
import { readRowTotals, type RowTotals } from './row-totals.ts'
import type { ShardCount } from './shard-count.ts'

const INTERVAL_MS = 5_000
/** The lease of a process that was killed ends after this time. It covers two attempts to renew it. */
const LEASE_MS = 15_000

/**
 * KEYS: the lease. ARGV: the process, the TTL in ms. Returns 1 if the process has the lease now. A process has it until it ends, so that
 * all values come from the same process while nothing fails.
 */
const TAKE_LEASE = `
${permitWrites}
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`

/** The state of the queues and of Redis, as one process of the installation reports it. */
export interface QueueReport extends Pick<QueueReading, 'shards'> {
  readonly totals: ReadonlyMap<number, RowTotals>
  /** `headroomS`: see `MemoryTrend`. */
  readonly servers: readonly { readonly memory: ServerMemory; readonly headroomS: number }[]
}

export interface QueueReporterOptions {
  readonly redis: RedisConnection
  readonly gauge: Pick<QueueGauge, 'read'>
  readonly shards: Pick<ShardCount, 'names'>
  /** See `InstallationNames.reporterKey`. */
  readonly leaseKey: string
  readonly processId: string
  readonly monotonicMs: () => number
  readonly logger: Logger
}

/**
 * Reads the state of the queues every five seconds, if this process has the lease for it. Otherwise the sum over all processes would be a
 * multiple of the truth.
 *
 * Without the lease (no report) → with it (a report) → without an answer of Redis (the last report, as long as the lease lasts) → without.
 */
export class QueueReporter {
  readonly #options: QueueReporterOptions
  readonly #takeLease: RedisScript<number>
  readonly #endLease: RedisScript<null>
  /** The last totals of each shard. */
  readonly #totals = new Map<number, RowTotals>()
  readonly #trend: MemoryTrend
  #task: PeriodicTask | undefined
  #report: QueueReport | undefined
  #leasedUntilMs = Number.NEGATIVE_INFINITY
  #hasFailed = false

  constructor(options: QueueReporterOptions) {
    this.#options = options
    this.#takeLease = defineScript(options.redis, 'sluiceTakeReporterLease', TAKE_LEASE)
    this.#endLease = defineScript(options.redis, 'sluiceDeleteIfEqual', DELETE_IF_EQUAL)
    this.#trend = new MemoryTrend(options.monotonicMs)
  }

  start(): void {
    this.#task = new PeriodicTask(INTERVAL_MS, () => this.poll())
    void this.poll()
  }

  /** The lease ends by itself. */
  stop(): void {
    this.#task?.stop()
  }

  /** Undefined if another process reports, or Redis has not answered for as long as the lease lasts. */
  get report(): QueueReport | undefined {
    return this.#options.monotonicMs() < this.#leasedUntilMs ? this.#report : undefined
  }

  /** Never rejects. */
  async poll(): Promise<void> {
    const { monotonicMs, leaseKey, processId, logger } = this.#options
    try {
      const startedMs = monotonicMs()
      if (!(await this.#hasLease(leaseKey, processId))) {
        this.#leasedUntilMs = Number.NEGATIVE_INFINITY
        return
      }
      this.#report = await this.#readOrYield()
      this.#leasedUntilMs = startedMs + LEASE_MS
      this.#hasFailed = false
    } catch (error) {
      if (!this.#hasFailed) logger.warn({ err: error }, 'cannot report the state of the queues')
      this.#hasFailed = true
    }
  }

  /** A process that has the lease keeps it while Redis rejects writes: no other process can take it, and the report is needed most. */
  async #hasLease(leaseKey: string, processId: string): Promise<boolean> {
    try {
      return (await this.#takeLease([leaseKey], [processId, LEASE_MS])) === 1
    } catch (error) {
      if (error instanceof Error && error.name === 'ReplyError' && this.report !== undefined) return true
      throw error
    }
  }

  /** A process that cannot read gives the lease to another one, which may be able to. */
  async #readOrYield(): Promise<QueueReport> {
    const { leaseKey, processId } = this.#options
    try {
      return await this.#read()
    } catch (error) {
      await this.#endLease([leaseKey], [processId]).catch(() => undefined)
      throw error
    }
  }

  /** As for the gauge, a shard that does not answer counts with its last reading. */
  async #read(): Promise<QueueReport> {
    const { gauge, shards, redis } = this.#options
    const { shards: readings, servers } = await gauge.read()
    await Promise.allSettled(
      shards.names.map(async ({ shard, totalsKey }) => {
        this.#totals.set(shard, readRowTotals(await redis.hgetall(totalsKey)))
      }),
    )
    return {
      shards: readings,
      totals: new Map(this.#totals),
      servers: servers.map((memory) => ({ memory, headroomS: this.#trend.headroomS(memory) })),
    }
  }
}
