import { type Dashboard, quantiles } from './panel.ts'
import { processPanels } from './process-panels.ts'
import { mean, of, quantile, rowsRate, sumRate, sumRateBy } from './promql.ts'
import { inserts, lag, oldestAge, queueRows, redisHeadroom, redisMemory } from './shared-panels.ts'

export const workers: Dashboard = {
  uid: 'sluice-workers',
  title: 'Sluice: queue, workers, stores',
  description: 'The queue, the workers, and what they get from Redis and ClickHouse.',
  rows: [
    {
      title: 'Queue',
      panels: [
        queueRows,
        {
          title: 'Chunks',
          description:
            'Many in hand and none waiting: workers fetch chunks, and ClickHouse does not take them.',
          unit: 'short',
          queries: [
            {
              expr: `sum by (state) (max by (shard, state) (${of('sluice_queue_chunks')}))`,
              legend: '{{state}}',
            },
          ],
        },
        oldestAge,
        {
          title: 'Rows added and removed',
          description: 'By stage, counted in Redis.',
          unit: 'rowsps',
          queries: ['added', 'inserted', 'dead_lettered', 'removed'].map((stage) => ({
            expr: rowsRate(stage),
            legend: stage,
          })),
        },
        redisMemory,
        redisHeadroom,
      ],
    },
    {
      title: 'Inserts',
      panels: [
        lag,
        inserts,
        {
          title: 'Duration of inserts',
          description:
            'Those that succeeded, and those that failed. An insert is given up after 60 s of silence.',
          unit: 's',
          queries: [
            ...quantiles('sluice_insert_duration_seconds', 'result="ok"'),
            {
              expr: quantile(0.5, 'sluice_insert_duration_seconds', 'result="error"'),
              legend: 'p50 of errors',
            },
          ],
        },
        {
          title: 'Errors of ClickHouse',
          description: 'Failed inserts and lookups, by the name of the error.',
          unit: 'reqps',
          queries: [{ expr: sumRateBy('code', 'sluice_insert_errors_total'), legend: '{{code}}' }],
        },
        {
          title: 'Batches',
          description: 'Mean rows, and the time from the fetch of the first chunk to the claim.',
          unit: 'short',
          queries: [{ expr: mean('sluice_batch_rows'), legend: 'rows' }],
        },
        {
          title: 'Wait of batches',
          description:
            'From the fetch of the first chunk of a batch to its claim. Half a second is usual (BATCH_WAIT_MS).',
          unit: 's',
          queries: quantiles('sluice_batch_wait_seconds'),
        },
        {
          title: 'Bytes inserted',
          description: 'Rows before compression.',
          unit: 'Bps',
          queries: [{ expr: sumRate('sluice_batch_bytes_sum'), legend: 'bytes' }],
        },
        {
          title: 'Retries and repairs',
          description: 'Retried steps, repairs of batches, splits of rejected ranges, and lookups of rows.',
          unit: 'reqps',
          queries: [
            { expr: sumRateBy('step', 'sluice_retries_total'), legend: 'retry: {{step}}' },
            { expr: sumRate('sluice_batches_recovered_total'), legend: 'repairs' },
            { expr: sumRate('sluice_batch_splits_total'), legend: 'splits' },
            { expr: sumRate('sluice_row_lookups_total'), legend: 'lookups' },
          ],
        },
        {
          title: 'In hand',
          description:
            'Chunks that workers have fetched, and inserts that wait for ClickHouse, of all workers.',
          unit: 'short',
          queries: [
            { expr: `sum(${of('sluice_worker_chunks_held')})`, legend: 'chunks' },
            { expr: `sum(${of('sluice_worker_inserts_in_flight')})`, legend: 'inserts' },
          ],
        },
      ],
    },
    {
      title: 'Processes',
      panels: [
        {
          title: 'Workers that insert',
          description: 'Workers whose inserts succeed.',
          unit: 'short',
          queries: [{ expr: `sum(${of('sluice_worker_inserting')})`, legend: 'workers' }],
        },
        ...processPanels('worker'),
      ],
    },
  ],
}
