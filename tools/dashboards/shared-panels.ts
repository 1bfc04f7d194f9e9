import { type Panel, quantiles, type Query } from './panel.ts'
import { of, sumRate, sumRateBy } from './promql.ts'

export const accepted: Query = { expr: sumRate('sluice_entries_accepted_total'), legend: 'accepted' }

export const requestsByStatus: Panel = {
  title: 'Requests',
  description: 'Answers to POST /v1/logs, by status.',
  unit: 'reqps',
  queries: [
    {
      expr: sumRateBy('status', 'sluice_http_requests_total', 'route=~"(/api)?/v1/logs"'),
      legend: '{{status}}',
    },
  ],
}

export const ackLatency: Panel = {
  title: 'Ack latency',
  description: 'From the head of a request to its 202. Most of it is the wait for the disk of Redis.',
  unit: 's',
  queries: quantiles('sluice_ack_duration_seconds'),
}

export const lag: Panel = {
  title: 'Lag from receipt to queryable',
  description: 'Of the chunks that were stored. A second is usual: workers collect rows for half a second.',
  unit: 's',
  queries: quantiles('sluice_lag_seconds'),
}

export const queueRows: Panel = {
  title: 'Rows in the queue',
  description: 'Added, and not inserted, dead-lettered or removed.',
  unit: 'short',
  queries: [{ expr: `sum(max by (shard) (${of('sluice_queue_rows')}))`, legend: 'rows' }],
}

export const oldestAge: Panel = {
  title: 'Age of the oldest chunk',
  description:
    'While nothing is stored, only this shows the delay: the lag is measured when a chunk is stored.',
  unit: 's',
  queries: [{ expr: `max(${of('sluice_queue_oldest_age_seconds')})`, legend: 'age' }],
}

export const rejections: Panel = {
  title: 'Rejected requests',
  description: 'Requests that were answered with a problem document, by its code.',
  unit: 'reqps',
  queries: [{ expr: sumRateBy('reason', 'sluice_requests_rejected_total'), legend: '{{reason}}' }],
}

export const overload: Panel = {
  title: 'Overload',
  description: 'Processes for which a signal is above its high-water mark. They answer every POST with 503.',
  unit: 'short',
  queries: [{ expr: `sum by (signal) (${of('sluice_overload_signal_active')})`, legend: '{{signal}}' }],
}

export const inserts: Panel = {
  title: 'ClickHouse inserts',
  description:
    'By result. From about 300 inserts per second and table on, the number of parts limits ClickHouse.',
  unit: 'reqps',
  queries: [{ expr: sumRateBy('result', 'sluice_insert_duration_seconds_count'), legend: '{{result}}' }],
}

export const redisMemory: Panel = {
  title: 'Redis memory',
  description: 'The API rejects all entries from 80 % of the limit on, until the memory is at 70 % again.',
  unit: 'bytes',
  queries: [
    { expr: `max by (server) (${of('sluice_redis_memory_used_bytes')})`, legend: 'used {{server}}' },
    { expr: `max by (server) (${of('sluice_redis_memory_limit_bytes')})`, legend: 'limit {{server}}' },
  ],
}

export const redisHeadroom: Panel = {
  title: 'Time until Redis is full',
  description: 'At the rate of the last five minutes. No line while the memory does not grow.',
  unit: 's',
  queries: [
    {
      expr: `min by (server) (${of('sluice_redis_memory_headroom_seconds')})`,
      legend: '{{server}}',
    },
  ],
}
