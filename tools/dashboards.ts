// The dashboards of Grafana, as lists of panels. `npm run docs` writes their JSON to deploy/grafana/dashboards, and test/documents.test.ts
// checks that it is current.

/** One line of a panel, or several with a label in braces in the legend. */
interface Query {
  /** PromQL. `$job` is the installation, `$__rate_interval` is replaced by Grafana. */
  readonly expr: string
  readonly legend: string
}

interface Panel {
  readonly title: string
  /** What the panel shows, and which value is usual. */
  readonly description: string
  /** One of Grafana's units. */
  readonly unit: 'short' | 'reqps' | 'rowsps' | 's' | 'bytes' | 'Bps' | 'percentunit' | 'percent' | 'none'
  readonly kind?: 'stat'
  readonly queries: readonly Query[]
}

export interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[]
}

const rate = (metric: string, matchers = ''): string =>
  `rate(${metric}{job="$job"${matchers === '' ? '' : `, ${matchers}`}}[$__rate_interval])`
const sumRate = (metric: string, matchers = ''): string => `sum(${rate(metric, matchers)})`
const sumRateBy = (label: string, metric: string, matchers = ''): string =>
  `sum by (${label}) (${rate(metric, matchers)})`
const quantile = (share: number, metric: string, matchers = ''): string =>
  `histogram_quantile(${share}, ${sumRateBy('le', `${metric}_bucket`, matchers)})`
const of = (metric: string, matchers = ''): string =>
  `${metric}{job="$job"${matchers === '' ? '' : `, ${matchers}`}}`
/** A metric that API processes and workers have, by the kind of process. */
const byApp = (aggregation: 'max' | 'sum', vector: string): string =>
  `${aggregation} by (app) (${vector} * on (job, instance) group_left (app) ${of('sluice_build_info')})`
/** One process exports the rows. While another one takes over, two may. */
const rowsRate = (stage: string): string =>
  `sum(max by (shard) (${rate('sluice_rows_total', `stage="${stage}"`)}))`
const quantiles = (metric: string, matchers = ''): readonly Query[] =>
  [0.5, 0.99].map((share) => ({ expr: quantile(share, metric, matchers), legend: `p${share * 100}` }))
const mean = (metric: string): string => `${sumRate(`${metric}_sum`)} / ${sumRate(`${metric}_count`)}`

const accepted: Query = { expr: sumRate('sluice_entries_accepted_total'), legend: 'accepted' }
const inserted: Query = { expr: sumRate('sluice_rows_inserted_total'), legend: 'inserted' }

const throughput: Panel = {
  title: 'Throughput',
  description:
    'Entries that were acknowledged, and rows that ClickHouse has. Both are equal while there is no backlog.',
  unit: 'rowsps',
  queries: [
    accepted,
    inserted,
    { expr: sumRate('sluice_rows_dead_lettered_total'), legend: 'dead-lettered' },
  ],
}

const requestsByStatus: Panel = {
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

const ackLatency: Panel = {
  title: 'Ack latency',
  description: 'From the head of a request to its 202. Most of it is the wait for the disk of Redis.',
  unit: 's',
  queries: quantiles('sluice_ack_duration_seconds'),
}

const lag: Panel = {
  title: 'Lag from receipt to queryable',
  description: 'Of the chunks that were stored. A second is usual: workers collect rows for half a second.',
  unit: 's',
  queries: quantiles('sluice_lag_seconds'),
}

const queueRows: Panel = {
  title: 'Rows in the queue',
  description: 'Added, and not inserted, dead-lettered or removed.',
  unit: 'short',
  queries: [{ expr: `sum(max by (shard) (${of('sluice_queue_rows')}))`, legend: 'rows' }],
}

const oldestAge: Panel = {
  title: 'Age of the oldest chunk',
  description:
    'While nothing is stored, only this shows the delay: the lag is measured when a chunk is stored.',
  unit: 's',
  queries: [{ expr: `max(${of('sluice_queue_oldest_age_seconds')})`, legend: 'age' }],
}

const rejections: Panel = {
  title: 'Rejected requests',
  description: 'Requests that were answered with a problem document, by its code.',
  unit: 'reqps',
  queries: [{ expr: sumRateBy('reason', 'sluice_requests_rejected_total'), legend: '{{reason}}' }],
}

const overload: Panel = {
  title: 'Overload',
  description: 'Processes for which a signal is above its high-water mark. They answer every POST with 503.',
  unit: 'short',
  queries: [{ expr: `sum by (signal) (${of('sluice_overload_signal_active')})`, legend: '{{signal}}' }],
}

const inserts: Panel = {
  title: 'ClickHouse inserts',
  description:
    'By result. From about 300 inserts per second and table on, the number of parts limits ClickHouse.',
  unit: 'reqps',
  queries: [{ expr: sumRateBy('result', 'sluice_insert_duration_seconds_count'), legend: '{{result}}' }],
}

const redisMemory: Panel = {
  title: 'Redis memory',
  description: 'The API rejects all entries from 80 % of the limit on, until the memory is at 70 % again.',
  unit: 'bytes',
  queries: [
    { expr: `max by (server) (${of('sluice_redis_memory_used_bytes')})`, legend: 'used {{server}}' },
    { expr: `max by (server) (${of('sluice_redis_memory_limit_bytes')})`, legend: 'limit {{server}}' },
  ],
}

const redisHeadroom: Panel = {
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

const eventLoop: Panel = {
  title: 'Event loop delay',
  description:
    'The worst process of each kind. API processes reject requests while their median is above 500 ms.',
  unit: 's',
  queries: [
    { expr: byApp('max', of('nodejs_eventloop_lag_p50_seconds')), legend: 'p50 {{app}}' },
    { expr: byApp('max', of('nodejs_eventloop_lag_p99_seconds')), legend: 'p99 {{app}}' },
  ],
}

const memory: Panel = {
  title: 'Memory of processes',
  description: 'Resident memory of the largest process of each kind.',
  unit: 'bytes',
  queries: [{ expr: byApp('max', of('process_resident_memory_bytes')), legend: '{{app}}' }],
}

const stat = (title: string, description: string, unit: Panel['unit'], expr: string): Panel => ({
  title,
  description,
  unit,
  kind: 'stat',
  queries: [{ expr, legend: title }],
})

const ready = (app: 'api' | 'worker'): string =>
  `sum(${of('sluice_ready')} * on (job, instance) group_left () ${of('sluice_build_info', `app="${app}"`)})`

const overview: Dashboard = {
  uid: 'sluice-overview',
  title: 'Sluice: overview',
  description: 'Whether entries are accepted, stored and can be queried.',
  rows: [
    {
      title: 'Now',
      panels: [
        stat('API ready', 'API processes that are ready.', 'none', ready('api')),
        stat('Workers ready', 'Workers that are ready.', 'none', ready('worker')),
        stat('Accepted', 'Entries acknowledged per second.', 'rowsps', accepted.expr),
        stat('Oldest chunk', oldestAge.description, 's', `max(${of('sluice_queue_oldest_age_seconds')})`),
        stat(
          'Redis memory',
          'Of the fullest server.',
          'percentunit',
          `max(max by (server) (${of('sluice_redis_memory_used_bytes')}) / max by (server) (${of('sluice_redis_memory_limit_bytes')}))`,
        ),
        stat(
          'Failed chunks',
          'They wait for an operator.',
          'none',
          `sum(max by (shard) (${of('sluice_queue_chunks', 'state="failed"')}))`,
        ),
        stat(
          'Dead letters',
          'Rows that ClickHouse has ever rejected, with those that were retried since.',
          'none',
          `sum(max by (shard) (${of('sluice_rows_total', 'stage="dead_lettered"')}))`,
        ),
      ],
    },
    { title: 'Requests', panels: [throughput, requestsByStatus, ackLatency, rejections] },
    { title: 'From receipt to ClickHouse', panels: [lag, oldestAge, queueRows, inserts] },
    { title: 'Resources', panels: [redisMemory, redisHeadroom, overload, eventLoop, memory] },
  ],
}

const api: Dashboard = {
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

const workers: Dashboard = {
  uid: 'sluice-workers',
  title: 'Sluice: queue, workers, stores',
  description: 'The queue, the workers, and what they get from Redis and ClickHouse.',
  rows: [
    {
      title: 'Queue',
      panels: [
        queueRows,
        {
          title: 'Chunks',
          description:
            'Many in hand and none waiting: workers fetch chunks, and ClickHouse does not take them.',
          unit: 'short',
          queries: [
            {
              expr: `sum by (state) (max by (shard, state) (${of('sluice_queue_chunks')}))`,
              legend: '{{state}}',
            },
          ],
        },
        oldestAge,
        {
          title: 'Rows added and removed',
          description: 'By stage, counted in Redis.',
          unit: 'rowsps',
          queries: ['added', 'inserted', 'dead_lettered', 'removed'].map((stage) => ({
            expr: rowsRate(stage),
            legend: stage,
          })),
        },
        redisMemory,
        redisHeadroom,
      ],
    },
    {
      title: 'Inserts',
      panels: [
        lag,
        inserts,
        {
          title: 'Duration of inserts',
          description:
            'Those that succeeded, and those that failed. An insert is given up after 60 s of silence.',
          unit: 's',
          queries: [
            ...quantiles('sluice_insert_duration_seconds', 'result="ok"'),
            {
              expr: quantile(0.5, 'sluice_insert_duration_seconds', 'result="error"'),
              legend: 'p50 of errors',
            },
          ],
        },
        {
          title: 'Errors of ClickHouse',
          description: 'Failed inserts and lookups, by the name of the error.',
          unit: 'reqps',
          queries: [{ expr: sumRateBy('code', 'sluice_insert_errors_total'), legend: '{{code}}' }],
        },
        {
          title: 'Batches',
          description: 'Mean rows, and the time from the fetch of the first chunk to the claim.',
          unit: 'short',
          queries: [{ expr: mean('sluice_batch_rows'), legend: 'rows' }],
        },
        {
          title: 'Wait of batches',
          description:
            'From the fetch of the first chunk of a batch to its claim. Half a second is usual (BATCH_WAIT_MS).',
          unit: 's',
          queries: quantiles('sluice_batch_wait_seconds'),
        },
        {
          title: 'Bytes inserted',
          description: 'Rows before compression.',
          unit: 'Bps',
          queries: [{ expr: sumRate('sluice_batch_bytes_sum'), legend: 'bytes' }],
        },
        {
          title: 'Retries and repairs',
          description: 'Retried steps, repairs of batches, splits of rejected ranges, and lookups of rows.',
          unit: 'reqps',
          queries: [
            { expr: sumRateBy('step', 'sluice_retries_total'), legend: 'retry: {{step}}' },
            { expr: sumRate('sluice_batches_recovered_total'), legend: 'repairs' },
            { expr: sumRate('sluice_batch_splits_total'), legend: 'splits' },
            { expr: sumRate('sluice_row_lookups_total'), legend: 'lookups' },
          ],
        },
        {
          title: 'In hand',
          description:
            'Chunks that workers have fetched, and inserts that wait for ClickHouse, of all workers.',
          unit: 'short',
          queries: [
            { expr: `sum(${of('sluice_worker_chunks_held')})`, legend: 'chunks' },
            { expr: `sum(${of('sluice_worker_inserts_in_flight')})`, legend: 'inserts' },
          ],
        },
      ],
    },
    {
      title: 'Processes',
      panels: [
        {
          title: 'Workers that insert',
          description: 'Workers whose inserts succeed.',
          unit: 'short',
          queries: [{ expr: `sum(${of('sluice_worker_inserting')})`, legend: 'workers' }],
        },
        ...processPanels('worker'),
      ],
    },
  ],
}

/** What Node.js and the runtime report, of the processes of one kind. */
function processPanels(app: 'api' | 'worker'): readonly Panel[] {
  const only = (vector: string): string =>
    `${vector} * on (job, instance) group_left () ${of('sluice_build_info', `app="${app}"`)}`
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

export const dashboards: readonly Dashboard[] = [overview, api, workers]

const WIDTH = 24
const STAT_HEIGHT = 4
const GRAPH = { w: 8, h: 8 } as const
/** Grafana names the queries of a panel A, B, C, … */
const FIRST_REF = 65

/** The files of the dashboards, by their paths from the root. */
export function dashboardFiles(): ReadonlyMap<string, string> {
  return new Map(
    dashboards.map((dashboard) => [
      `deploy/grafana/dashboards/${dashboard.uid}.json`,
      `${JSON.stringify(grafanaDashboard(dashboard), null, 2)}\n`,
    ]),
  )
}

/** A dashboard in the form of Grafana 10 and later, which migrate it to their own when they import it. */
function grafanaDashboard({ uid, title, description, rows }: Dashboard): object {
  return {
    uid,
    title,
    description,
    tags: ['sluice'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    time: { from: 'now-3h', to: 'now' },
    refresh: '30s',
    links: [
      {
        type: 'dashboards',
        tags: ['sluice'],
        title: 'Sluice',
        asDropdown: false,
        keepTime: true,
        includeVars: true,
      },
    ],
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
        {
          name: 'job',
          label: 'Installation',
          type: 'query',
          datasource,
          query: { query: 'label_values(sluice_build_info, job)', refId: 'job' },
          refresh: 2,
          sort: 1,
        },
      ],
    },
    panels: layOut(rows),
  }
}

const datasource = { type: 'prometheus', uid: '${datasource}' } as const

function layOut(rows: Dashboard['rows']): object[] {
  const panels: object[] = []
  let y = 0
  for (const { title, panels: members } of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: WIDTH, h: 1 },
      panels: [],
    })
    y += 1
    const isStats = members.every(({ kind }) => kind === 'stat')
    const { w, h } = isStats ? { w: Math.floor(WIDTH / members.length), h: STAT_HEIGHT } : GRAPH
    const perLine = Math.floor(WIDTH / w)
    for (const [index, panel] of members.entries()) {
      const gridPos = { x: (index % perLine) * w, y: y + Math.floor(index / perLine) * h, w, h }
      panels.push({ id: panels.length + 1, ...grafanaPanel(panel), gridPos })
    }
    y += Math.ceil(members.length / perLine) * h
  }
  return panels
}

function grafanaPanel({ title, description, unit, kind, queries }: Panel): object {
  return {
    type: kind ?? 'timeseries',
    title,
    description,
    datasource,
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCodePoint(FIRST_REF + index),
      datasource,
      expr,
      legendFormat: legend,
      ...(kind === 'stat' && { instant: true }),
    })),
    fieldConfig: { defaults: { unit, ...(kind === undefined && { min: 0 }) }, overrides: [] },
    options:
      kind === 'stat'
        ? {
            reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
            colorMode: 'none',
            graphMode: 'none',
          }
        : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  }
}
