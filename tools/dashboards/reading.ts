import { by, type Dashboard, graph, of, quantiles } from './panels.ts'
import { completeBehind, lag, processPanels } from './shared-panels.ts'

const queries = [
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
]

export const reading: Dashboard = {
  uid: 'sluice-reading',
  title: 'Sluice: query API',
  description: 'Queries, live tails, and how much of what was accepted readers can see.',
  rows: [
    { title: 'Queries', panels: queries },
    { title: 'What is complete', panels: [completeBehind, lag] },
    { title: 'Processes', panels: processPanels('query') },
  ],
}
