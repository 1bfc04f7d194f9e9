import { type Dashboard, quantiles } from './panel.ts'
import { processPanels } from './process-panels.ts'
import { mean, of, quantile, sumRate, sumRateBy } from './promql.ts'
import { accepted, ackLatency, overload, rejections, requestsByStatus } from './shared-panels.ts'

export const api: Dashboard = {
  uid: 'sluice-api',
  title: 'Sluice: API',
  description: 'Requests, acknowledgements and overload of the API processes.',
  rows: [
    {
      title: 'Requests',
      panels: [
        requestsByStatus,
        rejections,
        {
          title: 'Rejected because of overload',
          description: 'By the first signal above its high-water mark.',
          unit: 'reqps',
          queries: [{ expr: sumRateBy('signal', 'sluice_overload_rejections_total'), legend: '{{signal}}' }],
        },
        overload,
        {
          title: 'Entries',
          description:
            'Acknowledged, and rejected because they are invalid, by the code of their first error.',
          unit: 'rowsps',
          queries: [
            accepted,
            { expr: sumRateBy('reason', 'sluice_entries_rejected_total'), legend: 'rejected: {{reason}}' },
          ],
        },
        {
          title: 'Bodies',
          description: 'Bytes as they arrived, and after Content-Encoding was decoded.',
          unit: 'Bps',
          queries: [
            { expr: sumRate('sluice_request_body_bytes_total'), legend: 'arrived' },
            { expr: sumRate('sluice_request_decoded_bytes_total'), legend: 'decoded' },
          ],
        },
      ],
    },
    {
      title: 'Acknowledgements',
      panels: [
        ackLatency,
        {
          title: 'Adding a chunk to the queue',
          description: 'From the first attempt to the answer of Redis. It fails after 1.8 s.',
          unit: 's',
          queries: [
            ...quantiles('sluice_chunk_add_duration_seconds', 'result="ok"'),
            {
              expr: quantile(0.5, 'sluice_chunk_add_duration_seconds', 'result="error"'),
              legend: 'p50 of errors',
            },
          ],
        },
        {
          title: 'Chunks',
          description: 'By result of the add.',
          unit: 'reqps',
          queries: [
            { expr: sumRateBy('result', 'sluice_chunk_add_duration_seconds_count'), legend: '{{result}}' },
          ],
        },
        {
          title: 'Rows per chunk',
          description: 'The mean. A chunk has up to 2,000 rows; few rows per chunk cost more of everything.',
          unit: 'short',
          queries: [{ expr: mean('sluice_chunk_rows'), legend: 'rows' }],
        },
        {
          title: 'Bytes per row in Redis',
          description: 'Compressed bytes of the chunks, per row.',
          unit: 'bytes',
          queries: [
            {
              expr: `${sumRate('sluice_chunk_bytes_sum')} / ${sumRate('sluice_chunk_rows_sum')}`,
              legend: 'bytes',
            },
          ],
        },
        {
          title: 'Keys and replays',
          description:
            'Lookups of API keys, by whether they were cached, and requests answered from an idempotency record.',
          unit: 'reqps',
          queries: [
            { expr: sumRateBy('result', 'sluice_key_lookups_total'), legend: 'key lookups: {{result}}' },
            { expr: sumRate('sluice_idempotency_replays_total'), legend: 'replays' },
          ],
        },
      ],
    },
    {
      title: 'Processes',
      panels: [
        {
          title: 'Bytes held',
          description:
            'Rows that wait for Redis, and bodies, in the process with the most. The limits are in docs/overload.md.',
          unit: 'bytes',
          queries: [
            { expr: `max(${of('sluice_bytes_in_flight')})`, legend: 'rows' },
            { expr: `max(${of('sluice_body_bytes_held')})`, legend: 'bodies' },
          ],
        },
        ...processPanels('api'),
      ],
    },
  ],
}
