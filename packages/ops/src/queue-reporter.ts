import { queuedRows } from '@sluice/queue'
import type { Logger } from '@sluice/runtime'
import type { Metrics, Sample } from './metrics.ts'
import type { QueueGauge, QueueReading, ServerMemory, ShardReading } from './queue-gauge.ts'

/** The state of the queues and of Redis, as one process of the installation reports it. */
export interface QueueReport extends Pick<QueueReading, 'shards'> {
  readonly servers: readonly (ServerMemory & { readonly headroomS: number })[]
}

interface QueueReporterOptions {
  readonly gauge: Pick<QueueGauge, 'read'>
  readonly monotonicMs: () => number
  readonly logger: Logger
}

/**
 * The state of the queues, if this process has the lease for its report. Otherwise the sum over all processes would be a multiple of the
 * truth. `Heartbeat` renews the lease every five seconds.
 *
 * Without the lease (no report) → with it (a report) → without a reply of Redis (the last report, as long as the lease lasts) → without.
 */
export class QueueReporter {
  readonly #options: QueueReporterOptions
  readonly #headroomS: ReturnType<typeof memoryTrend>
  #report: QueueReport | undefined
  #leasedUntilMs = Number.NEGATIVE_INFINITY
  /** Whether this process may have the lease. Not after a read has failed: another process may be able to read. */
  canRead = true

  constructor(options: QueueReporterOptions) {
    this.#options = options
    this.#headroomS = memoryTrend(options.monotonicMs)
  }

  /** Undefined if another process reports, or Redis has not replied for as long as the lease lasts. */
  get report(): QueueReport | undefined {
    return this.#options.monotonicMs() < this.#leasedUntilMs ? this.#report : undefined
  }

  /** Reads the queues if this process has the lease. Never rejects. @param leasedUntilMs undefined if another process has it */
  async update(leasedUntilMs: number | undefined): Promise<void> {
    const { gauge, logger } = this.#options
    try {
      if (leasedUntilMs !== undefined) {
        const { shards, servers } = await gauge.read()
        this.#report = {
          shards,
          servers: Array.from(servers, (each) => ({ ...each, headroomS: this.#headroomS(each) })),
        }
      }
      this.#leasedUntilMs = leasedUntilMs ?? Number.NEGATIVE_INFINITY
      this.canRead = true
    } catch (error) {
      this.canRead = false
      logger.warn({ err: error }, 'cannot report the state of the queues')
    }
  }
}

/** Long enough for the rewrites of an append-only file, and short enough for an outage of ClickHouse. */
const WINDOW_MS = 300_000

/**
 * How the memory of Redis grows.
 *
 * @returns records the memory of a server, and returns the time in seconds until its limit at the rate of the last five minutes; Infinity if
 *   it does not grow
 */
export function memoryTrend(monotonicMs: () => number): (memory: ServerMemory) => number {
  /** Of all servers, in the last five minutes, oldest first. */
  let samples: (ServerMemory & { readonly atMs: number })[] = []
  return (memory) => {
    const { server, usedBytes, limitBytes } = memory
    const now = { ...memory, atMs: monotonicMs() }
    samples = [...samples.filter(({ atMs }) => now.atMs - atMs <= WINDOW_MS), now]
    const first = samples.find((sample) => sample.server === server) ?? now
    const grownBytes = usedBytes - first.usedBytes
    if (grownBytes <= 0) return Number.POSITIVE_INFINITY
    return (Math.max(0, limitBytes - usedBytes) * (now.atMs - first.atMs)) / grownBytes / 1_000
  }
}

/** Exports the state of the queues and of Redis, if this process reports it. docs/metrics.md describes each metric. */
export function exportQueues(metrics: Metrics, reporter: Pick<QueueReporter, 'report'>): void {
  const ofShards = (read: (shard: ShardReading) => Readonly<Record<string, number>>) => (): Sample[] =>
    (reporter.report?.shards ?? []).flatMap((each) =>
      Object.entries(read(each)).map(([state, value]) => [[String(each.shard), state], value] as const),
    )
  metrics.gauge(
    { name: 'sluice_queue_chunks', help: 'Chunks in the queue.', labels: ['shard', 'state'] },
    ofShards(({ waiting, delayed, inHand, failed }) => ({ waiting, delayed, in_hand: inHand, failed })),
  )
  const ageHelp = 'Age of the oldest chunk that waits or is in hand.'
  metrics.gauge(
    { name: 'sluice_queue_oldest_age_seconds', help: ageHelp, labels: ['shard'] },
    ofShards(({ oldestAgeS }) => ({ oldestAgeS })),
  )
  metrics.gauge(
    { name: 'sluice_queue_rows', help: 'Rows in the queue.', labels: ['shard'] },
    ofShards(({ totals }) => ({ rows: queuedRows(totals) })),
  )
  metrics.counter(
    { name: 'sluice_rows_total', help: 'Rows by what became of them.', labels: ['shard', 'stage'] },
    ofShards(({ totals: { added, inserted, deadLettered, removed } }) => ({
      added,
      inserted,
      dead_lettered: deadLettered,
      removed,
    })),
  )
  const headroomHelp = 'Time until the memory of Redis is full, at the rate of the last five minutes.'
  for (const [name, field, help] of [
    ['used_bytes', 'usedBytes', 'Memory of Redis that counts against its limit.'],
    ['limit_bytes', 'limitBytes', 'The limit of the memory of Redis.'],
    ['headroom_seconds', 'headroomS', headroomHelp],
  ] as const)
    metrics.gauge({ name: `sluice_redis_memory_${name}`, help, labels: ['server'] }, () =>
      (reporter.report?.servers ?? []).map((each) => [[each.server], each[field]]),
    )
}
