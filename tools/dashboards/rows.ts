import {
  by,
  byApp,
  durationsByResult,
  graph,
  of,
  ofShards,
  type Panel,
  type Query,
  quantiles,
  rate,
  type Row,
  stat,
  sumRate,
} from './panels.ts'

const accepted: Query = { legend: 'accepted', expr: sumRate('sluice_entries_accepted_total') }

const row = (title: string, ...panels: readonly Panel[]): Row => ({ title, panels })

/** From what operators look at first, to the causes. */
export const rows: readonly Row[] = [
  row(
    'Now',
    stat('Ready', 'none', 'Processes that are ready.', byApp('sum', of('sluice_ready'))),
    stat('Accepted', 'rowsps', 'Entries acknowledged per second.', accepted.expr),
    stat(
      'Oldest chunk',
      's',
      'While nothing is stored, only this shows the delay.',
      `max(${of('sluice_queue_oldest_age_seconds')})`,
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
  ),
  row(
    'Requests',
    graph(
      'Throughput',
      'rowsps',
      'Entries that were acknowledged, and rows that ClickHouse has. Both are equal while there is no backlog.',
      accepted,
      { legend: 'inserted', expr: sumRate('sluice_rows_inserted_total') },
      { legend: 'dead-lettered', expr: sumRate('sluice_rows_dead_lettered_total') },
    ),
    graph(
      'Requests',
      'reqps',
      'Responses to requests with entries, of all protocols, by status.',
      by('status', 'sluice_http_requests_total', 'method=~"POST|PUT", route!="other"'),
    ),
    graph(
      'Rejected requests',
      'reqps',
      'Requests that were answered with a problem document, by its code.',
      by('reason', 'sluice_requests_rejected_total'),
    ),
    graph(
      'Overload',
      'short',
      'Processes for which a signal is above its high-water mark. They answer every POST with 503.',
      { legend: '{{signal}}', expr: `sum by (signal) (${of('sluice_overload_signal_active')})` },
    ),
    graph(
      'Entries',
      'rowsps',
      'Acknowledged, and rejected because they are invalid, by the code of their first error.',
      accepted,
      by('reason', 'sluice_entries_rejected_total', '', 'rejected: '),
    ),
    graph(
      'Ack latency',
      's',
      'From the head of a request to its 202. Most of it is the wait for the disk of Redis.',
      ...quantiles('sluice_ack_duration_seconds'),
    ),
    graph(
      'Adding a chunk to the queue',
      's',
      'From the first attempt to the response of Redis. It fails after 1.8 s.',
      ...durationsByResult('sluice_chunk_add_duration_seconds'),
    ),
  ),
  row(
    'Inserts',
    graph(
      'Lag from receipt to queryable',
      's',
      'Of the chunks that were stored. A second is usual: workers collect rows for half a second.',
      ...quantiles('sluice_lag_seconds'),
    ),
    graph(
      'Complete up to',
      's',
      'How far the time up to which readers have everything is behind. A second or two is usual. No line: it is not known.',
      { legend: 'behind', expr: `max(${of('sluice_query_complete_behind_seconds')})` },
    ),
    graph(
      'ClickHouse inserts',
      'reqps',
      'By result. From about 300 inserts per second and table on, the number of parts limits ClickHouse.',
      by('result', 'sluice_insert_duration_seconds_count'),
    ),
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
  ),
  row(
    'Queue',
    graph('Rows in the queue', 'short', 'Added, and not inserted, dead-lettered or removed.', {
      legend: 'rows',
      expr: `sum(${ofShards(of('sluice_queue_rows'))})`,
    }),
    graph(
      'Chunks',
      'short',
      'Many in hand and none waiting: workers fetch chunks, and ClickHouse does not take them.',
      {
        legend: '{{state}}',
        expr: `sum by (state) (${ofShards(of('sluice_queue_chunks'), 'shard, state')})`,
      },
    ),
    graph(
      'Age of the oldest chunk',
      's',
      'While nothing is stored, only this shows the delay: the lag is measured when a chunk is stored.',
      { legend: 'age', expr: `max(${of('sluice_queue_oldest_age_seconds')})` },
    ),
    graph(
      'Redis memory',
      'bytes',
      'The API rejects all entries from 80 % of the limit on, until the memory is at 70 % again.',
      { legend: 'used {{server}}', expr: ofShards(of('sluice_redis_memory_used_bytes'), 'server') },
      { legend: 'limit {{server}}', expr: ofShards(of('sluice_redis_memory_limit_bytes'), 'server') },
    ),
    graph(
      'Time until Redis is full',
      's',
      'At the rate of the last five minutes. No line while the memory does not grow.',
      { legend: '{{server}}', expr: `min by (server) (${of('sluice_redis_memory_headroom_seconds')})` },
    ),
  ),
  row(
    'Queries',
    graph(
      'Requests by route',
      'reqps',
      'Answered requests to the query API and the explorer.',
      by('route', 'sluice_query_requests_total'),
    ),
    graph('Requests by status', 'reqps', 'The same by status.', by('status', 'sluice_query_requests_total')),
    graph(
      'Duration',
      's',
      'From a request to its answer, and of tails and exports to the beginning of it.',
      ...quantiles('sluice_query_duration_seconds'),
    ),
    graph(
      'Rejected requests',
      'reqps',
      'Requests that were answered with a problem document, by its code: query_too_expensive is 422, too_many_queries 429.',
      by('reason', 'sluice_query_rejected_total'),
    ),
    graph(
      'Queries and viewers',
      'short',
      'Queries that run, and connections that watch entries arrive, of all processes.',
      { legend: 'queries', expr: `sum(${of('sluice_queries_running')})` },
      { legend: 'viewers', expr: `sum(${of('sluice_tail_viewers')})` },
    ),
  ),
  row(
    'Processes',
    graph(
      'Event loop delay',
      's',
      'Of the worst process of each kind.',
      ...['p50', 'p99'].map((share) =>
        byApp('max', of(`nodejs_eventloop_lag_${share}_seconds`), `${share} `),
      ),
    ),
    graph(
      'CPU',
      'short',
      'Cores that the busiest process uses. One is the most for the event loop; other threads come on top.',
      byApp('max', rate('process_cpu_seconds_total')),
    ),
    graph(
      'Memory',
      'bytes',
      'Of the largest process. Bodies and frames are outside of the heap.',
      byApp('max', of('process_resident_memory_bytes'), 'resident '),
      byApp('max', of('nodejs_heap_size_used_bytes'), 'heap '),
      byApp('max', of('nodejs_external_memory_bytes'), 'external '),
    ),
    graph(
      'Bytes held by the API',
      'bytes',
      'Bodies and their rows, in the process with the most. The limits are in docs/overload.md.',
      { legend: 'bodies', expr: `max(${of('sluice_body_bytes_held')})` },
    ),
  ),
]
