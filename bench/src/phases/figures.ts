/** How a figure is displayed and compared. */
export interface FigureSpec {
  readonly label: string
  readonly unit: string
  readonly digits: number
  /** Which direction is better. Undefined for figures that are not compared. */
  readonly better: 'higher' | 'lower' | undefined
}

const rate = (label: string): FigureSpec => ({ label, unit: 'entries/s', digits: 0, better: 'higher' })
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

/** All figures, in display order. */
export const figureSpecs = {
  capacityPerS: rate('highest sustained rate'),
  requestsPerS: { label: '… in requests', unit: 'requests/s', digits: 0, better: 'higher' },
  acceptedPerS: rate('accepted at that rate'),
  storedPerS: rate('stored at that rate'),
  saturatedPerS: rate('accepted when saturated'),
  burstPerS: rate('accepted in the burst'),
  drainPerS: rate('drained after the burst'),
  drainS: { label: 'duration of the drain', unit: 's', digits: 1, better: undefined },
  ackP50Ms: ms('ack p50'),
  ackP99Ms: ms('ack p99'),
  ackP999Ms: ms('ack p99.9'),
  queryableP50Ms: ms('ack to queryable p50'),
  queryableP99Ms: ms('ack to queryable p99'),
  apiCpuUs: cpu('API'),
  workerCpuUs: cpu('worker'),
  redisCpuUs: cpu('Redis'),
  clickhouseCpuUs: cpu('ClickHouse'),
  totalCpuUs: cpu('total'),
  apiRssMb: rss('API'),
  workerRssMb: rss('worker'),
  redisRssMb: rss('Redis'),
  clickhouseRssMb: rss('ClickHouse'),
  redisBytesPerEntry: { label: 'Redis memory per queued entry', unit: 'bytes', digits: 0, better: 'lower' },
  connections: { label: 'connections', unit: '', digits: 0, better: undefined },
  othersCores: { label: 'other programs', unit: 'cores', digits: 2, better: undefined },
  generatorCores: { label: 'load generator', unit: 'cores', digits: 2, better: undefined },
} as const satisfies Record<string, FigureSpec>

export type FigureName = keyof typeof figureSpecs
export const figureNames = Object.keys(figureSpecs) as FigureName[]

/** The figures that were measured. */
export type Figures = Partial<Record<FigureName, number>>
