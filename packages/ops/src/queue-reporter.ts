import { queuedRows } from '@sluice/queue'
import type { Logger } from '@sluice/runtime'
import type { Metrics, Sample } from './metrics.ts'
import type { QueueGauge, QueueReading, ServerMemory } from './queue-gauge.ts'

/** The state of the queues and of Redis, as one process of the installation reports it. */
export interface QueueReport extends Pick<QueueReading, 'shards'> {
  readonly servers: readonly (ServerMemory & { readonly headroomS: number })[]
}

/**
 * The state of the queues, if this process has the lease for its report. Otherwise the sum over all processes would be a multiple of the
 * truth. `Heartbeat` renews the lease every five seconds.
 *
 * Without the lease (no report) → with it (a report) → without a reply of Redis (the last report, as long as the lease lasts) → without.
 */
export class QueueReporter {
  readonly #gauge: Pick<QueueGauge, 'read'>
  readonly #monotonicMs: () => number
  readonly #logger: Logger
  readonly #trend: MemoryTrend
  #report: QueueReport | undefined
  #leasedUntilMs = Number.NEGATIVE_INFINITY
  /** Whether this process may have the lease. Not after a read has failed: another process may be able to read. */
  canRead = true

  constructor(gauge: Pick<QueueGauge, 'read'>, monotonicMs: () => number, logger: Logger) {
    this.#gauge = gauge
    this.#monotonicMs = monotonicMs
    this.#logger = logger
    this.#trend = new MemoryTrend(monotonicMs)
  }

  /** Undefined if another process reports, or Redis has not replied for as long as the lease lasts. */
  get report(): QueueReport | undefined {
    return this.#monotonicMs() < this.#leasedUntilMs ? this.#report : undefined
  }

  /** Reads the queues if this process has the lease. Never rejects. @param leasedUntilMs undefined if another process has it */
  async update(leasedUntilMs: number | undefined): Promise<void> {
    try {
      if (leasedUntilMs !== undefined) this.#report = await this.#read()
      this.#leasedUntilMs = leasedUntilMs ?? Number.NEGATIVE_INFINITY
      this.canRead = true
    } catch (error) {
      this.canRead = false
      this.#logger.warn({ err: error }, 'cannot report the state of the queues')
    }
  }

  async #read(): Promise<QueueReport> {
    const { shards, servers } = await this.#gauge.read()
    const headroomS = (memory: ServerMemory): number => this.#trend.headroomS(memory)
    return { shards, servers: Array.from(servers, (each) => ({ ...each, headroomS: headroomS(each) })) }
  }
}

/** Long enough for the rewrites of an append-only file, and short enough for an outage of ClickHouse. */
const WINDOW_MS = 300_000

/** How the memory of Redis grows. */
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
