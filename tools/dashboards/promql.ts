// The parts of PromQL that the panels consist of. Each selects the installation of the dashboard.

/** A metric, or with `matchers` some of its series. */
export const of = (metric: string, matchers = ''): string =>
  `${metric}{job="$job"${matchers === '' ? '' : `, ${matchers}`}}`
export const rate = (metric: string, matchers = ''): string =>
  `rate(${of(metric, matchers)}[$__rate_interval])`
export const sumRate = (metric: string, matchers = ''): string => `sum(${rate(metric, matchers)})`
export const sumRateBy = (label: string, metric: string, matchers = ''): string =>
  `sum by (${label}) (${rate(metric, matchers)})`
export const quantile = (share: number, metric: string, matchers = ''): string =>
  `histogram_quantile(${share}, ${sumRateBy('le', `${metric}_bucket`, matchers)})`
export const mean = (metric: string): string => `${sumRate(`${metric}_sum`)} / ${sumRate(`${metric}_count`)}`
/** One process exports the rows. While another one takes over, two may. */
export const rowsRate = (stage: string): string =>
  `sum(max by (shard) (${rate('sluice_rows_total', `stage="${stage}"`)}))`
/** What API processes and workers export, of the worst process of each kind. */
export const maxByApp = (vector: string): string =>
  `max by (app) (${vector} * on (job, instance) group_left (app) ${of('sluice_build_info')})`
/** What API processes and workers export, of the processes of one kind. */
export const ofApp = (app: 'api' | 'worker', vector: string): string =>
  `${vector} * on (job, instance) group_left () ${of('sluice_build_info', `app="${app}"`)}`
