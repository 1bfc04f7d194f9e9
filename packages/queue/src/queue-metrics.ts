import type { Metrics, Sample } from '@sluice/runtime'
import type { QueueReport, QueueReporter } from './queue-reporter.ts'
import { queuedRows } from './row-totals.ts'

/** Exports the state of the queues and of Redis, if this process reports it. docs/metrics.md describes each metric. */
export function exportQueues(metrics: Metrics, reporter: Pick<QueueReporter, 'report'>): void {
  const samples = (of: (report: QueueReport) => Iterable<Sample>) => () =>
    reporter.report === undefined ? [] : of(reporter.report)
  metrics.gauge(
    { name: 'sluice_queue_chunks', help: 'Chunks in the queue.', labels: ['shard', 'state'] },
    samples(({ shards }) =>
      shards.flatMap(({ shard, waiting, delayed, inHand, failed }): Sample[] => [
        [[String(shard), 'waiting'], waiting],
        [[String(shard), 'delayed'], delayed],
        [[String(shard), 'in_hand'], inHand],
        [[String(shard), 'failed'], failed],
      ]),
    ),
  )
  metrics.gauge(
    {
      name: 'sluice_queue_oldest_age_seconds',
      help: 'Age of the oldest chunk that waits or is in hand.',
      labels: ['shard'],
    },
    samples(({ shards }) => shards.map(({ shard, oldestAgeS }) => [[String(shard)], oldestAgeS])),
  )
  metrics.gauge(
    { name: 'sluice_queue_rows', help: 'Rows in the queue.', labels: ['shard'] },
    samples(({ totals }) => Array.from(totals, ([shard, rows]) => [[String(shard)], queuedRows(rows)])),
  )
  metrics.counter(
    { name: 'sluice_rows_total', help: 'Rows by what became of them.', labels: ['shard', 'stage'] },
    samples(({ totals }) =>
      Array.from(totals).flatMap(([shard, { added, inserted, deadLettered, removed }]): Sample[] => [
        [[String(shard), 'added'], added],
        [[String(shard), 'inserted'], inserted],
        [[String(shard), 'dead_lettered'], deadLettered],
        [[String(shard), 'removed'], removed],
      ]),
    ),
  )
  const servers = (of: (server: QueueReport['servers'][number]) => number) =>
    samples((report) => report.servers.map((each) => [[each.memory.server], of(each)]))
  metrics.gauge(
    {
      name: 'sluice_redis_memory_used_bytes',
      help: 'Memory of Redis that counts against its limit.',
      labels: ['server'],
    },
    servers(({ memory }) => memory.usedBytes),
  )
  metrics.gauge(
    {
      name: 'sluice_redis_memory_limit_bytes',
      help: 'The limit of the memory of Redis.',
      labels: ['server'],
    },
    servers(({ memory }) => memory.limitBytes),
  )
  metrics.gauge(
    {
      name: 'sluice_redis_memory_headroom_seconds',
      help: 'Time until the memory of Redis is full, at the rate of the last five minutes.',
      labels: ['server'],
    },
    servers(({ headroomS }) => headroomS),
  )
}
