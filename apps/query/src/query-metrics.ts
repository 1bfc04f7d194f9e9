import { LabelledCounts, type Metrics } from '@sluice/ops'
import { operationParameters } from './parameters.ts'
import type { Pipeline } from './pipeline.ts'
import { type ProblemCode, problems } from './problems.ts'
import type { QuerySlots } from './query-slots.ts'
import type { Tails } from './tail/tails.ts'

/** Statuses times paths. */
const SERIES_MAX = 200
/** From a page that is cached to the usual limit of time. */
const bucketsS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

interface Measured {
  readonly slots: Pick<QuerySlots, 'running'>
  readonly tails: Pick<Tails, 'viewers'>
  readonly pipeline: Pick<Pipeline, 'completeBehindS'>
}

export type QueryMetrics = ReturnType<typeof exportQueries>

/** Exports what the process does. docs/metrics.md describes each metric. */
export function exportQueries(metrics: Metrics, { slots, tails, pipeline }: Measured) {
  const counts = new LabelledCounts(SERIES_MAX)
  metrics.counter(
    { name: 'sluice_query_requests_total', help: 'Responses.', labels: ['route', 'status'] },
    () => [...counts].map(([[key = ''], count]) => [key.split(' '), count]),
  )
  const reasons = Object.keys(problems)
  const rejections = new LabelledCounts(reasons.length, reasons)
  const rejected = { name: 'sluice_query_rejected_total', help: 'Rejected, by problem.', labels: ['reason'] }
  metrics.counter(rejected, () => rejections)
  const gauges = [
    ['sluice_queries_running', 'Queries that run.', () => slots.running],
    ['sluice_tail_viewers', 'Connections that watch entries arrive.', () => tails.viewers],
    [
      'sluice_query_complete_behind_seconds',
      'How far what is complete is behind.',
      () => pipeline.completeBehindS ?? [],
    ],
  ] as const
  for (const [name, help, read] of gauges) metrics.gauge({ name, help }, read)
  const help = 'Time from a request to its answer.'
  const of = Object.keys(operationParameters)
  return {
    /** Records how long an answer to an operation took. */
    observe: metrics.histogram(
      { name: 'sluice_query_duration_seconds', help, label: 'operation', of },
      bucketsS,
    ),
    /** Counts a response. */
    count: (route: string, status: number): void => counts.add(`${route} ${status}`),
    /** Counts a response that is a problem document. */
    reject: (reason: ProblemCode): void => rejections.add(reason),
  }
}
