import { LabelledCounts, type Metrics } from '@sluice/ops'
import { operationParameters } from './parameters.ts'
import type { QuerySlots } from './query-slots.ts'
import type { Tails } from './tail/tails.ts'

/** Statuses times operations, and other paths. */
const SERIES_MAX = 200
/** From a page that is cached to the usual limit of time. */
const bucketsS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export interface QueryMetrics {
  /** Counts a response. */
  readonly count: (operation: string, status: number) => void
  /** Records how long an answer took. */
  readonly observe: (seconds: number, operation: string) => void
}

/** Exports what the process does. docs/metrics.md describes each metric. */
export function exportQueries(
  metrics: Metrics,
  { slots, tails }: { slots: Pick<QuerySlots, 'running'>; tails: Pick<Tails, 'viewers'> },
): QueryMetrics {
  const counts = new LabelledCounts(SERIES_MAX)
  metrics.counter(
    { name: 'sluice_query_requests_total', help: 'Responses.', labels: ['operation', 'status'] },
    () => [...counts].map(([[key = ''], count]) => [key.split(' '), count]),
  )
  metrics.gauge({ name: 'sluice_queries_running', help: 'Queries that run.' }, () => slots.running)
  metrics.gauge(
    { name: 'sluice_tail_viewers', help: 'Connections that watch entries arrive.' },
    () => tails.viewers,
  )
  const observe = metrics.histogram(
    {
      name: 'sluice_query_duration_seconds',
      help: 'Time from a request to its answer.',
      label: 'operation',
      of: Object.keys(operationParameters),
    },
    bucketsS,
  )
  return { observe, count: (operation, status) => counts.add(`${operation} ${status}`) }
}
