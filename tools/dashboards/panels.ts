/** One line of a panel, or several with a label in braces in the legend. */
export interface Query {
  /** PromQL. `$job` is the installation, `$__rate_interval` is replaced by Grafana. */
  readonly expr: string
  readonly legend: string
}

export interface Panel {
  readonly title: string
  /** What the panel shows, and which value is usual. */
  readonly description: string
  /** One of Grafana's units. */
  readonly unit: 'short' | 'reqps' | 'rowsps' | 's' | 'bytes' | 'Bps' | 'percentunit' | 'none'
  readonly kind?: 'stat'
  readonly queries: readonly Query[]
}

export interface Row {
  readonly title: string
  readonly panels: readonly Panel[]
}

export const graph = (
  title: string,
  unit: Panel['unit'],
  description: string,
  ...queries: readonly Query[]
): Panel => ({ title, description, unit, queries })

/** A panel with the present numbers. */
export const stat = (
  title: string,
  unit: Panel['unit'],
  description: string,
  query: string | Query,
): Panel => ({
  ...graph(title, unit, description, typeof query === 'string' ? { legend: title, expr: query } : query),
  kind: 'stat',
})

// The parts of PromQL that the panels consist of. Each selects the installation of the dashboard.

/** A metric, or with `matchers` some of its series. */
export const of = (metric: string, matchers = ''): string =>
  `${metric}{job="$job"${matchers === '' ? '' : `, ${matchers}`}}`
export const rate = (metric: string, matchers = ''): string =>
  `rate(${of(metric, matchers)}[$__rate_interval])`
export const sumRate = (metric: string, matchers = ''): string => `sum(${rate(metric, matchers)})`
const sumRateBy = (label: string, metric: string, matchers = ''): string =>
  `sum by (${label}) (${rate(metric, matchers)})`
const quantile = (share: number, metric: string, matchers = ''): string =>
  `histogram_quantile(${share}, ${sumRateBy('le', `${metric}_bucket`, matchers)})`
/** Of the queue, or of Redis: one process exports them, and two may while another one takes over. */
export const ofShards = (vector: string, labels = 'shard'): string => `max by (${labels}) (${vector})`
/** What all processes export, with a line for the API, the workers and the query processes. */
export const byApp = (aggregate: 'max' | 'sum', vector: string, name = ''): Query => ({
  legend: `${name}{{app}}`,
  expr: `${aggregate} by (app) (${vector} * on (job, instance, process) group_left (app) ${of('sluice_build_info')})`,
})

/** A line for each value of a label. */
export const by = (label: string, metric: string, matchers = '', prefix = ''): Query => ({
  legend: `${prefix}{{${label}}}`,
  expr: sumRateBy(label, metric, matchers),
})
/** The median and the 99th percentile of a histogram. */
export const quantiles = (metric: string, matchers = ''): readonly Query[] =>
  [0.5, 0.99].map((share) => ({ legend: `p${share * 100}`, expr: quantile(share, metric, matchers) }))
/** The durations of what succeeded, and of what failed. */
export const durationsByResult = (metric: string): readonly Query[] => [
  ...quantiles(metric, 'result="ok"'),
  { legend: 'p50 of errors', expr: quantile(0.5, metric, 'result="error"') },
]
