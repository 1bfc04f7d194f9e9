import { by, type Dashboard, durationsByResult, graph, of, ofShards, sumRate } from './panels.ts'
import {
  inserts,
  lag,
  oldestAge,
  processPanels,
  queueRows,
  redisHeadroom,
  redisMemory,
} from './shared-panels.ts'

const queue = [
  queueRows,
  graph(
    'Chunks',
    'short',
    'Many in hand and none waiting: workers fetch chunks, and ClickHouse does not take them.',
    { legend: '{{state}}', expr: `sum by (state) (${ofShards(of('sluice_queue_chunks'), 'shard, state')})` },
  ),
  oldestAge,
  redisMemory,
  redisHeadroom,
]

const insertPanels = [
  lag,
  inserts,
  graph(
    'Duration of inserts',
    's',
    'Those that succeeded, and those that failed. An insert is given up after 60 s of silence.',
    ...durationsByResult('sluice_insert_duration_seconds'),
  ),
  graph(
    'Errors of ClickHouse',
    'reqps',
    'Failed inserts and lookups, by the name of the error.',
    by('code', 'sluice_insert_errors_total'),
  ),
  graph(
    'Retries and repairs',
    'reqps',
    'Retried steps, repairs of batches, splits of rejected ranges, and lookups of rows.',
    by('step', 'sluice_retries_total', '', 'retry: '),
    { legend: 'repairs', expr: sumRate('sluice_batches_recovered_total') },
    { legend: 'splits', expr: sumRate('sluice_batch_splits_total') },
    { legend: 'lookups', expr: sumRate('sluice_row_lookups_total') },
  ),
  graph(
    'In hand',
    'short',
    'Chunks that workers have fetched, and inserts that wait for ClickHouse, of all workers.',
    { legend: 'chunks', expr: `sum(${of('sluice_worker_chunks_held')})` },
    { legend: 'inserts', expr: `sum(${of('sluice_worker_inserts_in_flight')})` },
  ),
]

export const workers: Dashboard = {
  uid: 'sluice-workers',
  title: 'Sluice: queue, workers, stores',
  description: 'The queue, the workers, and what they get from Redis and ClickHouse.',
  rows: [
    { title: 'Queue', panels: queue },
    { title: 'Inserts', panels: insertPanels },
    { title: 'Processes', panels: processPanels('worker') },
  ],
}
