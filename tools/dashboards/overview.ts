import { type Dashboard, graph, maxByApp, of, ofApp, ofShards, stat, sumRate } from './panels.ts'
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

const throughput = graph(
  'Throughput',
  'rowsps',
  'Entries that were acknowledged, and rows that ClickHouse has. Both are equal while there is no backlog.',
  accepted,
  { legend: 'inserted', expr: sumRate('sluice_rows_inserted_total') },
  { legend: 'dead-lettered', expr: sumRate('sluice_rows_dead_lettered_total') },
)

const eventLoop = graph(
  'Event loop delay',
  's',
  'The worst process of each kind. API processes reject requests while their median is above 500 ms.',
  { legend: 'p50 {{app}}', expr: maxByApp(of('nodejs_eventloop_lag_p50_seconds')) },
  { legend: 'p99 {{app}}', expr: maxByApp(of('nodejs_eventloop_lag_p99_seconds')) },
)

const memory = graph('Memory of processes', 'bytes', 'Resident memory of the largest process of each kind.', {
  legend: '{{app}}',
  expr: maxByApp(of('process_resident_memory_bytes')),
})

const ready = (app: 'api' | 'worker'): string => `sum(${ofApp(app, of('sluice_ready'))})`
const memoryOf = (metric: string): string => ofShards(of(`sluice_redis_memory_${metric}_bytes`), 'server')

const now = [
  stat('API ready', 'none', 'API processes that are ready.', ready('api')),
  stat('Workers ready', 'none', 'Workers that are ready.', ready('worker')),
  stat('Accepted', 'rowsps', 'Entries acknowledged per second.', accepted.expr),
  stat('Oldest chunk', 's', oldestAge.description, `max(${of('sluice_queue_oldest_age_seconds')})`),
  stat(
    'Redis memory',
    'percentunit',
    'Of the fullest server.',
    `max(${memoryOf('used')} / ${memoryOf('limit')})`,
  ),
  stat(
    'Failed chunks',
    'none',
    'They wait for an operator.',
    `sum(${ofShards(of('sluice_queue_chunks', 'state="failed"'))})`,
  ),
  stat(
    'Dead letters',
    'none',
    'Rows that ClickHouse has ever rejected, with those that were retried since.',
    `sum(${ofShards(of('sluice_rows_total', 'stage="dead_lettered"'))})`,
  ),
]

export const overview: Dashboard = {
  uid: 'sluice-overview',
  title: 'Sluice: overview',
  description: 'Whether entries are accepted, stored and can be queried.',
  rows: [
    { title: 'Now', panels: now },
    { title: 'Requests', panels: [throughput, requestsByStatus, ackLatency, rejections] },
    { title: 'From receipt to ClickHouse', panels: [lag, oldestAge, queueRows, inserts] },
    { title: 'Resources', panels: [redisMemory, redisHeadroom, overload, eventLoop, memory] },
  ],
}
