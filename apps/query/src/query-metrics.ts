import { LabelledCounts, type Metrics } from '@sluice/ops'
import type { CompleteLag } from './complete-lag.ts'
import { operationParameters } from './parameters.ts'
import { type ProblemCode, problems } from './problems.ts'
import type { QuerySlots } from './query-slots.ts'
import type { Tails } from './tail/tails.ts'

/** Statuses times paths. */
const SERIES_MAX = 200
/** From a page that is cached to the usual limit of time. */
const bucketsS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export interface QueryMetrics {
  /** Counts a response. */
  readonly count: (route: string, status: number) => void
  /** Counts a response that is a problem document. */
  readonly reject: (reason: ProblemCode) => void
  /** Records how long an answer took. */
  readonly observe: (seconds: number, operation: string) => void
}

/** Exports what the process does. docs/metrics.md describes each metric. */
export function exportQueries(
  metrics: Metrics,
  {
    slots,
    tails,
    lag,
  }: {
    slots: Pick<QuerySlots, 'running'>
    tails: Pick<Tails, 'viewers'>
    lag: Pick<CompleteLag, 'seconds'>
  },
): QueryMetrics {
  const counts = new LabelledCounts(SERIES_MAX)
  metrics.counter(
    { name: 'sluice_query_requests_total', help: 'Responses.', labels: ['route', 'status'] },
    () => [...counts].map(([[key = ''], count]) => [key.split(' '), count]),
  )
  const reasons = Object.keys(problems)
  const rejections = new LabelledCounts(reasons.length, reasons)
  metrics.counter(
    { name: 'sluice_query_rejected_total', help: 'Rejected, by problem.', labels: ['reason'] },
    () => rejections,
  )
  metrics.gauge(
    {
      name: 'sluice_query_complete_behind_seconds',
      help: 'How far the time up to which everything can be read is behind.',
    },
    () => lag.seconds ?? [],
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
  return {
    observe,
    count: (route, status) => counts.add(`${route} ${status}`),
    reject: (reason) => rejections.add(reason),
  }
}
