import {
  by,
  type Dashboard,
  durationsByResult,
  graph,
  mean,
  of,
  ofShards,
  quantiles,
  rate,
  sumRate,
} from './panels.ts'
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
    {
      legend: '{{state}}',
      expr: `sum by (state) (${ofShards(of('sluice_queue_chunks'), 'shard, state')})`,
    },
  ),
  oldestAge,
  graph(
    'Rows added and removed',
    'rowsps',
    'By stage, counted in Redis.',
    ...['added', 'inserted', 'dead_lettered', 'removed'].map((stage) => ({
      legend: stage,
      expr: `sum(${ofShards(rate('sluice_rows_total', `stage="${stage}"`))})`,
    })),
  ),
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
  graph('Batches', 'short', 'Mean rows, and the time from the fetch of the first chunk to the claim.', {
    legend: 'rows',
    expr: mean('sluice_batch_rows'),
  }),
  graph(
    'Wait of batches',
    's',
    'From the fetch of the first chunk of a batch to its claim. Half a second is usual (BATCH_WAIT_MS).',
    ...quantiles('sluice_batch_wait_seconds'),
  ),
  graph('Bytes inserted', 'Bps', 'Rows before compression.', {
    legend: 'bytes',
    expr: sumRate('sluice_batch_bytes_sum'),
  }),
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

const inserting = graph('Workers that insert', 'short', 'Workers whose inserts succeed.', {
  legend: 'workers',
  expr: `sum(${of('sluice_worker_inserting')})`,
})

export const workers: Dashboard = {
  uid: 'sluice-workers',
  title: 'Sluice: queue, workers, stores',
  description: 'The queue, the workers, and what they get from Redis and ClickHouse.',
  rows: [
    { title: 'Queue', panels: queue },
    { title: 'Inserts', panels: insertPanels },
    { title: 'Processes', panels: [inserting, ...processPanels('worker')] },
  ],
}
