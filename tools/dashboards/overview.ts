import type { Dashboard, Panel } from './panel.ts'
import { maxByApp, of, ofApp, sumRate } from './promql.ts'
import {
  accepted,
  ackLatency,
  inserts,
  lag,
  oldestAge,
  overload,
  queueRows,
  redisHeadroom,
  redisMemory,
  rejections,
  requestsByStatus,
} from './shared-panels.ts'

const throughput: Panel = {
  title: 'Throughput',
  description:
    'Entries that were acknowledged, and rows that ClickHouse has. Both are equal while there is no backlog.',
  unit: 'rowsps',
  queries: [
    accepted,
    { expr: sumRate('sluice_rows_inserted_total'), legend: 'inserted' },
    { expr: sumRate('sluice_rows_dead_lettered_total'), legend: 'dead-lettered' },
  ],
}

const eventLoop: Panel = {
  title: 'Event loop delay',
  description:
    'The worst process of each kind. API processes reject requests while their median is above 500 ms.',
  unit: 's',
  queries: [
    { expr: maxByApp(of('nodejs_eventloop_lag_p50_seconds')), legend: 'p50 {{app}}' },
    { expr: maxByApp(of('nodejs_eventloop_lag_p99_seconds')), legend: 'p99 {{app}}' },
  ],
}

const memory: Panel = {
  title: 'Memory of processes',
  description: 'Resident memory of the largest process of each kind.',
  unit: 'bytes',
  queries: [{ expr: maxByApp(of('process_resident_memory_bytes')), legend: '{{app}}' }],
}

const stat = (title: string, description: string, unit: Panel['unit'], expr: string): Panel => ({
  title,
  description,
  unit,
  kind: 'stat',
  queries: [{ expr, legend: title }],
})

const ready = (app: 'api' | 'worker'): string => `sum(${ofApp(app, of('sluice_ready'))})`

export const overview: Dashboard = {
  uid: 'sluice-overview',
  title: 'Sluice: overview',
  description: 'Whether entries are accepted, stored and can be queried.',
  rows: [
    {
      title: 'Now',
      panels: [
        stat('API ready', 'API processes that are ready.', 'none', ready('api')),
        stat('Workers ready', 'Workers that are ready.', 'none', ready('worker')),
        stat('Accepted', 'Entries acknowledged per second.', 'rowsps', accepted.expr),
        stat('Oldest chunk', oldestAge.description, 's', `max(${of('sluice_queue_oldest_age_seconds')})`),
        stat(
          'Redis memory',
          'Of the fullest server.',
          'percentunit',
          `max(max by (server) (${of('sluice_redis_memory_used_bytes')}) / max by (server) (${of('sluice_redis_memory_limit_bytes')}))`,
        ),
        stat(
          'Failed chunks',
          'They wait for an operator.',
          'none',
          `sum(max by (shard) (${of('sluice_queue_chunks', 'state="failed"')}))`,
        ),
        stat(
          'Dead letters',
          'Rows that ClickHouse has ever rejected, with those that were retried since.',
          'none',
          `sum(max by (shard) (${of('sluice_rows_total', 'stage="dead_lettered"')}))`,
        ),
      ],
    },
    { title: 'Requests', panels: [throughput, requestsByStatus, ackLatency, rejections] },
    { title: 'From receipt to ClickHouse', panels: [lag, oldestAge, queueRows, inserts] },
    { title: 'Resources', panels: [redisMemory, redisHeadroom, overload, eventLoop, memory] },
  ],
}
