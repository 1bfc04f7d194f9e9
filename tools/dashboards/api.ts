import { by, type Dashboard, durationsByResult, graph, of } from './panels.ts'
import {
  accepted,
  ackLatency,
  overload,
  processPanels,
  rejections,
  requestsByStatus,
} from './shared-panels.ts'

const requests = [
  requestsByStatus,
  rejections,
  graph(
    'Rejected because of overload',
    'reqps',
    'By the first signal above its high-water mark.',
    by('signal', 'sluice_overload_rejections_total'),
  ),
  overload,
  graph(
    'Entries',
    'rowsps',
    'Acknowledged, and rejected because they are invalid, by the code of their first error.',
    accepted,
    by('reason', 'sluice_entries_rejected_total', '', 'rejected: '),
  ),
]

const acknowledgements = [
  ackLatency,
  graph(
    'Adding a chunk to the queue',
    's',
    'From the first attempt to the response of Redis. It fails after 1.8 s.',
    ...durationsByResult('sluice_chunk_add_duration_seconds'),
  ),
  graph('Chunks', 'reqps', 'By result of the add.', by('result', 'sluice_chunk_add_duration_seconds_count')),
]

const bytesHeld = graph(
  'Bytes held',
  'bytes',
  'Bodies and their rows, in the process with the most. The limits are in docs/overload.md.',
  { legend: 'bodies', expr: `max(${of('sluice_body_bytes_held')})` },
)

export const api: Dashboard = {
  uid: 'sluice-api',
  title: 'Sluice: API',
  description: 'Requests, acknowledgements and overload of the API processes.',
  rows: [
    { title: 'Requests', panels: requests },
    { title: 'Acknowledgements', panels: acknowledgements },
    { title: 'Processes', panels: [bytesHeld, ...processPanels('api')] },
  ],
}
