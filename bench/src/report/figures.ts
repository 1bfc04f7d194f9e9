/** One figure of a system, as it is shown. */
export interface FigureSpec {
  readonly label: string
  readonly unit: string
  readonly digits: number
  /** Which way is better, for the ratios; undefined for what is not compared. */
  readonly better: 'higher' | 'lower' | undefined
}

const higher = (label: string): FigureSpec => ({ label, unit: 'entries/s', digits: 0, better: 'higher' })
const ms = (label: string): FigureSpec => ({ label, unit: 'ms', digits: 1, better: 'lower' })
const cpu = (label: string): FigureSpec => ({
  label: `CPU ${label}`,
  unit: 'µs/entry',
  digits: 2,
  better: 'lower',
})
const rss = (label: string): FigureSpec => ({
  label: `peak RSS ${label}`,
  unit: 'MB',
  digits: 0,
  better: 'lower',
})

/** Every figure, in the order in which they are shown. */
export const figureSpecs = {
  capacityPerS: higher('highest rate that drains'),
  requestsPerS: { label: '… in requests', unit: 'requests/s', digits: 0, better: 'higher' },
  acceptedPerS: higher('accepted at that rate'),
  storedPerS: higher('stored at that rate'),
  saturatedPerS: higher('accepted when saturated'),
  burstPerS: higher('accepted in the burst'),
  drainPerS: higher('drained after it'),
  drainS: { label: 'time to drain it', unit: 's', digits: 1, better: undefined },
  ackP50Ms: ms('ack p50'),
  ackP99Ms: ms('ack p99'),
  ackP999Ms: ms('ack p99.9'),
  queryableP50Ms: ms('ack to queryable p50'),
  queryableP99Ms: ms('ack to queryable p99'),
  apiCpuUs: cpu('API'),
  workerCpuUs: cpu('worker'),
  redisCpuUs: cpu('Redis'),
  clickhouseCpuUs: cpu('ClickHouse'),
  totalCpuUs: cpu('all four'),
  apiRssMb: rss('API'),
  workerRssMb: rss('worker'),
  redisRssMb: rss('Redis'),
  clickhouseRssMb: rss('ClickHouse'),
  redisBytesPerEntry: { label: 'Redis memory a queued entry', unit: 'bytes', digits: 0, better: 'lower' },
  connections: { label: 'connections', unit: '', digits: 0, better: undefined },
  othersCores: { label: 'other programs', unit: 'cores', digits: 2, better: undefined },
  generatorCores: { label: 'load generator', unit: 'cores', digits: 2, better: undefined },
} as const satisfies Record<string, FigureSpec>

export type FigureName = keyof typeof figureSpecs
export const figureNames = Object.keys(figureSpecs) as FigureName[]

/** Those that were measured. */
export type Figures = Partial<Record<FigureName, number>>

/** How many times better `ours` is than `theirs`; undefined where they do not compare. */
export function ratio(name: FigureName, ours: Figures, theirs: Figures): number | undefined {
  const { better } = figureSpecs[name]
  const [a, b] = [ours[name], theirs[name]]
  if (better === undefined || a === undefined || b === undefined || a === 0 || b === 0) return undefined
  return better === 'higher' ? a / b : b / a
}
