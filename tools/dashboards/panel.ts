import { quantile } from './promql.ts'

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

export interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[]
}

/** The median and the 99th percentile of a histogram. */
export const quantiles = (metric: string, matchers = ''): readonly Query[] =>
  [0.5, 0.99].map((share) => ({ expr: quantile(share, metric, matchers), legend: `p${share * 100}` }))
