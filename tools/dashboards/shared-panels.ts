import {
  type App,
  by,
  graph,
  of,
  ofApp,
  ofShards,
  type Panel,
  type Query,
  quantiles,
  rate,
  sumRate,
} from './panels.ts'

export const accepted: Query = { legend: 'accepted', expr: sumRate('sluice_entries_accepted_total') }

export const requestsByStatus = graph(
  'Requests',
  'reqps',
  'Responses to requests with entries, of all protocols, by status.',
  by('status', 'sluice_http_requests_total', 'method=~"POST|PUT", route!="other"'),
)

export const ackLatency = graph(
  'Ack latency',
  's',
  'From the head of a request to its 202. Most of it is the wait for the disk of Redis.',
  ...quantiles('sluice_ack_duration_seconds'),
)

export const lag = graph(
  'Lag from receipt to queryable',
  's',
  'Of the chunks that were stored. A second is usual: workers collect rows for half a second.',
  ...quantiles('sluice_lag_seconds'),
)

export const queueRows = graph(
  'Rows in the queue',
  'short',
  'Added, and not inserted, dead-lettered or removed.',
  { legend: 'rows', expr: `sum(${ofShards(of('sluice_queue_rows'))})` },
)

export const oldestAge = graph(
  'Age of the oldest chunk',
  's',
  'While nothing is stored, only this shows the delay: the lag is measured when a chunk is stored.',
  { legend: 'age', expr: `max(${of('sluice_queue_oldest_age_seconds')})` },
)

export const completeBehind = graph(
  'Complete up to',
  's',
  'How far the time up to which readers have everything is behind. A second or two is usual. No line: it is not known.',
  { legend: 'behind', expr: `max(${of('sluice_query_complete_behind_seconds')})` },
)

export const rejections = graph(
  'Rejected requests',
  'reqps',
  'Requests that were answered with a problem document, by its code.',
  by('reason', 'sluice_requests_rejected_total'),
)

export const overload = graph(
  'Overload',
  'short',
  'Processes for which a signal is above its high-water mark. They answer every POST with 503.',
  { legend: '{{signal}}', expr: `sum by (signal) (${of('sluice_overload_signal_active')})` },
)

export const inserts = graph(
  'ClickHouse inserts',
  'reqps',
  'By result. From about 300 inserts per second and table on, the number of parts limits ClickHouse.',
  by('result', 'sluice_insert_duration_seconds_count'),
)

export const redisMemory = graph(
  'Redis memory',
  'bytes',
  'The API rejects all entries from 80 % of the limit on, until the memory is at 70 % again.',
  { legend: 'used {{server}}', expr: ofShards(of('sluice_redis_memory_used_bytes'), 'server') },
  { legend: 'limit {{server}}', expr: ofShards(of('sluice_redis_memory_limit_bytes'), 'server') },
)

export const redisHeadroom = graph(
  'Time until Redis is full',
  's',
  'At the rate of the last five minutes. No line while the memory does not grow.',
  { legend: '{{server}}', expr: `min by (server) (${of('sluice_redis_memory_headroom_seconds')})` },
)

/** What Node.js and the runtime report, of the processes of one kind. */
export function processPanels(app: App): readonly Panel[] {
  const most = (vector: string): string => `max(${ofApp(app, vector)})`
  return [
    graph(
      'Event loop delay',
      's',
      'Of the worst process.',
      ...['p50', 'p99'].map((share) => ({
        legend: share,
        expr: most(of(`nodejs_eventloop_lag_${share}_seconds`)),
      })),
    ),
    graph(
      'CPU',
      'short',
      'Cores that the busiest process uses. One is the most for the event loop; other threads come on top.',
      { legend: 'cores', expr: most(rate('process_cpu_seconds_total')) },
    ),
    graph(
      'Memory',
      'bytes',
      'Of the largest process. Bodies and frames are outside of the heap.',
      { legend: 'resident', expr: most(of('process_resident_memory_bytes')) },
      { legend: 'heap', expr: most(of('nodejs_heap_size_used_bytes')) },
      { legend: 'external', expr: most(of('nodejs_external_memory_bytes')) },
    ),
  ]
}
