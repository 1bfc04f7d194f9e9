import { queuedRows } from '@sluice/queue'
import {
  defineScript,
  DELETE_IF_EQUAL,
  type Logger,
  permitWrites,
  type RedisConnection,
  type RedisScript,
  RegularCheck,
} from '@sluice/runtime'
import type { Metrics, Sample } from './metrics.ts'
import type { QueueGauge, QueueReading, ServerMemory } from './queue-gauge.ts'

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
  readonly servers: readonly (ServerMemory & { readonly headroomS: number })[]
}

export interface QueueReporterOptions {
  readonly redis: RedisConnection
  readonly gauge: Pick<QueueGauge, 'read'>
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
 * Without the lease (no report) → with it (a report) → without a reply of Redis (the last report, as long as the lease lasts) → without.
 */
export class QueueReporter extends RegularCheck<QueueReporterOptions> {
  protected readonly intervalMs = INTERVAL_MS
  readonly #takeLease: RedisScript<number>
  readonly #deleteIfEqual: RedisScript<unknown>
  readonly #trend: MemoryTrend
  #report: QueueReport | undefined
  #leasedUntilMs = Number.NEGATIVE_INFINITY
  #hasFailed = false

  constructor(options: QueueReporterOptions) {
    super(options)
    this.#takeLease = defineScript(options.redis, TAKE_LEASE)
    this.#deleteIfEqual = defineScript(options.redis, DELETE_IF_EQUAL)
    this.#trend = new MemoryTrend(options.monotonicMs)
  }

  /** Undefined if another process reports, or Redis has not replied for as long as the lease lasts. */
  get report(): QueueReport | undefined {
    return this.options.monotonicMs() < this.#leasedUntilMs ? this.#report : undefined
  }

  async check(): Promise<void> {
    const { monotonicMs, leaseKey, processId, logger } = this.options
    try {
      const startedMs = monotonicMs()
      const hasLease = await this.#hasLease()
      if (hasLease) this.#report = await this.#read()
      this.#leasedUntilMs = hasLease ? startedMs + LEASE_MS : Number.NEGATIVE_INFINITY
      this.#hasFailed = false
    } catch (error) {
      // Another process may be able to read.
      await this.#deleteIfEqual([leaseKey], [processId]).catch(() => undefined)
      if (!this.#hasFailed) logger.warn({ err: error }, 'cannot report the state of the queues')
      this.#hasFailed = true
    }
  }

  /** A process that has the lease keeps it while Redis rejects writes: no other process can take it, and the report is needed most. */
  async #hasLease(): Promise<boolean> {
    const { leaseKey, processId } = this.options
    try {
      return (await this.#takeLease([leaseKey], [processId, LEASE_MS])) === 1
    } catch (error) {
      if (error instanceof Error && error.name === 'ReplyError' && this.report !== undefined) return true
      throw error
    }
  }

  async #read(): Promise<QueueReport> {
    const { shards, servers } = await this.options.gauge.read()
    const withHeadroom = servers.map((memory) =>
      Object.assign({ headroomS: this.#trend.headroomS(memory) }, memory),
    )
    return { shards, servers: withHeadroom }
  }
}

/** Long enough for the rewrites of an append-only file, and short enough for an outage of ClickHouse. */
const WINDOW_MS = 300_000
export class MemoryTrend {
  readonly #monotonicMs: () => number
  /** Of all servers, in the last five minutes, oldest first. */
  #samples: (ServerMemory & { readonly atMs: number })[] = []

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /**
   * Records the memory of a server.
   *
   * @returns the time in seconds until its limit at the rate of the last five minutes; Infinity if it does not grow
   */
  headroomS(memory: ServerMemory): number {
    const { server, usedBytes, limitBytes } = memory
    const now = { ...memory, atMs: this.#monotonicMs() }
    this.#samples = this.#samples.filter(({ atMs }) => now.atMs - atMs <= WINDOW_MS)
    this.#samples.push(now)
    const first = this.#samples.find((sample) => sample.server === server) ?? now
    const grownBytes = usedBytes - first.usedBytes
    if (grownBytes <= 0) return Number.POSITIVE_INFINITY
    return (Math.max(0, limitBytes - usedBytes) * (now.atMs - first.atMs)) / grownBytes / 1_000
  }
}

/** Exports the state of the queues and of Redis, if this process reports it. docs/metrics.md describes each metric. */
export function exportQueues(metrics: Metrics, reporter: Pick<QueueReporter, 'report'>): void {
  const samples = (of: (report: QueueReport) => Iterable<Sample>) => () =>
    reporter.report === undefined ? [] : of(reporter.report)
  const gauge = (
    [name, help, ...labels]: [name: string, help: string, ...labels: string[]],
    of: Parameters<typeof samples>[0],
  ): void => metrics.gauge({ name, help, labels }, samples(of))
  gauge(['sluice_queue_chunks', 'Chunks in the queue.', 'shard', 'state'], ({ shards }) =>
    shards.flatMap(({ shard, waiting, delayed, inHand, failed }) =>
      samplesOf(shard, { waiting, delayed, in_hand: inHand, failed }),
    ),
  )
  const ageHelp = 'Age of the oldest chunk that waits or is in hand.'
  gauge(['sluice_queue_oldest_age_seconds', ageHelp, 'shard'], ({ shards }) =>
    shards.map(({ shard, oldestAgeS }) => [[String(shard)], oldestAgeS]),
  )
  gauge(['sluice_queue_rows', 'Rows in the queue.', 'shard'], ({ shards }) =>
    shards.map(({ shard, totals }) => [[String(shard)], queuedRows(totals)]),
  )
  metrics.counter(
    { name: 'sluice_rows_total', help: 'Rows by what became of them.', labels: ['shard', 'stage'] },
    samples(({ shards }) =>
      shards.flatMap(({ shard, totals: { added, inserted, deadLettered, removed } }) =>
        samplesOf(shard, { added, inserted, dead_lettered: deadLettered, removed }),
      ),
    ),
  )
  const headroomHelp = 'Time until the memory of Redis is full, at the rate of the last five minutes.'
  for (const [name, field, help] of [
    ['used_bytes', 'usedBytes', 'Memory of Redis that counts against its limit.'],
    ['limit_bytes', 'limitBytes', 'The limit of the memory of Redis.'],
    ['headroom_seconds', 'headroomS', headroomHelp],
  ] as const)
    gauge([`sluice_redis_memory_${name}`, help, 'server'], ({ servers }) =>
      servers.map((each) => [[each.server], each[field]]),
    )
}

function samplesOf(shard: number, counts: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(counts).map(([label, count]) => [[String(shard), label], count])
}
