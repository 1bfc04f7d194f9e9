import { type App, type Dashboard, graph, of, ofApp, ofShards, stat, sumRate } from './panels.ts'
import {
  accepted,
  ackLatency,
  completeBehind,
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

const ready = (app: App): string => `sum(${ofApp(app, of('sluice_ready'))})`

const now = [
  stat('API ready', 'none', 'API processes that are ready.', ready('api')),
  stat('Workers ready', 'none', 'Workers that are ready.', ready('worker')),
  stat('Query ready', 'none', 'Query processes that are ready.', ready('query')),
  stat('Accepted', 'rowsps', 'Entries acknowledged per second.', accepted.expr),
  stat('Oldest chunk', 's', oldestAge.description, `max(${of('sluice_queue_oldest_age_seconds')})`),
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
    { title: 'From receipt to ClickHouse', panels: [lag, completeBehind, oldestAge, queueRows, inserts] },
    { title: 'Resources', panels: [redisMemory, redisHeadroom, overload] },
  ],
}
