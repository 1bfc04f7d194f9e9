import type { Panel } from './panel.ts'
import { of, ofApp, rate } from './promql.ts'

/** What Node.js and the runtime report, of the processes of one kind. */
export function processPanels(app: 'api' | 'worker'): readonly Panel[] {
  const only = (vector: string): string => ofApp(app, vector)
  return [
    {
      title: 'Event loop delay',
      description: 'Of the worst process.',
      unit: 's',
      queries: ['p50', 'p99'].map((share) => ({
        expr: `max(${only(of(`nodejs_eventloop_lag_${share}_seconds`))})`,
        legend: share,
      })),
    },
    {
      title: 'CPU',
      description:
        'Cores that the busiest process uses. One is the most for the event loop; other threads come on top.',
      unit: 'short',
      queries: [{ expr: `max(${only(rate('process_cpu_seconds_total'))})`, legend: 'cores' }],
    },
    {
      title: 'Memory',
      description: 'Of the largest process. Bodies and frames are outside of the heap.',
      unit: 'bytes',
      queries: [
        { expr: `max(${only(of('process_resident_memory_bytes'))})`, legend: 'resident' },
        { expr: `max(${only(of('nodejs_heap_size_used_bytes'))})`, legend: 'heap' },
        { expr: `max(${only(of('nodejs_external_memory_bytes'))})`, legend: 'external' },
      ],
    },
    {
      title: 'Garbage collection',
      description: 'Share of the time, by kind, in the process with the most.',
      unit: 'percentunit',
      queries: [
        {
          expr: `max by (kind) (${only(rate('nodejs_gc_duration_seconds_sum'))})`,
          legend: '{{kind}}',
        },
      ],
    },
  ]
}
