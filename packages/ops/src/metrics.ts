import {
  collectDefaultMetrics,
  Counter,
  type CounterConfiguration,
  Gauge,
  Histogram,
  Registry,
} from 'prom-client'

/** The values of a metric's labels, in the order of their names, and the value. */
export type Sample = readonly [labels: readonly string[], value: number]

/** How often the delay of the event loop is measured. Fewer measurements cost less, and miss short delays. */
const EVENT_LOOP_RESOLUTION_MS = 20

interface MetricOptions {
  /** In the conventions of Prometheus: `sluice_`, a unit, and `_total` for a counter. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

interface HistogramOptions extends Omit<MetricOptions, 'labels'> {
  readonly label?: string
  readonly of?: readonly string[]
}

/**
 * The metrics of a process. What is counted is counted by the parts of the process, in fields of their own: an addition each. The metrics
 * read these fields when they are scraped. Only histograms are counted here.
 */
export class Metrics {
  readonly #registry = new Registry()

  /**
   * With the metrics of Node.js and of the process.
   *
   * @param labels of `sluice_build_info`
   */
  constructor(labels: { readonly app: string; readonly version: string }) {
    collectDefaultMetrics({
      register: this.#registry,
      eventLoopMonitoringPrecision: EVENT_LOOP_RESOLUTION_MS,
    })
    this.gauge(
      { name: 'sluice_build_info', help: 'The version of the process.', labels: ['app', 'version'] },
      () => [[[labels.app, labels.version], 1]],
    )
  }

  /** @param read returns the current counts; labels that it no longer returns are no longer exported */
  counter(options: MetricOptions, read: () => number | Iterable<Sample>): void {
    this.#add(Counter, options, read, (counter, of, value) => counter.inc(of, Math.max(0, value)))
  }

  /** @param read as for `counter` */
  gauge(options: MetricOptions, read: () => number | Iterable<Sample>): void {
    this.#add(Gauge, options, read, (gauge, of, value) => gauge.set(of, value))
  }

  #add<Metric extends Counter | Gauge>(
    Kind: new (configuration: CounterConfiguration<string>) => Metric,
    { name, help, labels = [] }: MetricOptions,
    read: () => number | Iterable<Sample>,
    set: (metric: Metric, labels: Record<string, string>, value: number) => void,
  ): void {
    const collect = (): void => {
      const values = read()
      const samples: Sample[] = typeof values === 'number' ? [[[], values]] : [...values]
      metric.reset()
      // Without labels it is 0 after its reset, also if it has no value.
      if (samples.length === 0 && labels.length === 0) metric.remove()
      for (const [of, value] of samples)
        set(metric, Object.fromEntries(labels.map((label, i) => [label, of[i] ?? ''])), value)
    }
    const metric = new Kind({ name, help, labelNames: [...labels], registers: [this.#registry], collect })
  }

  /**
   * @param buckets the upper bounds, ascending
   * @returns counts an observation, and never throws: it ignores a value that is not finite. With a label, its value is the second
   *   argument. The values in `of` are exported from the start
   */
  histogram(
    { name, help, label, of = [] }: HistogramOptions,
    buckets: readonly number[],
  ): (value: number, labelValue?: string) => void {
    const histogram = new Histogram({
      name,
      help,
      labelNames: label === undefined ? [] : [label],
      buckets: [...buckets],
      registers: [this.#registry],
    })
    for (const value of of) histogram.zero({ [String(label)]: value })
    const known = new Map(of.map((value) => [value, histogram.labels(value)]))
    return (value, labelValue) => {
      if (Number.isFinite(value))
        (labelValue === undefined ? histogram : known.get(labelValue))?.observe(value)
    }
  }

  get page(): { readonly contentType: string; readonly text: () => Promise<string> } {
    return { contentType: this.#registry.contentType, text: () => this.#registry.metrics() }
  }
}

/** Counts by the value of one label. The number of values is limited: those above the limit are counted as `other`. */
export class LabelledCounts {
  readonly #counts: Map<string, number>
  readonly #valuesMax: number

  /** @param known values that are exported before they are counted */
  constructor(valuesMax: number, known: readonly string[] = []) {
    this.#valuesMax = valuesMax
    this.#counts = new Map(known.map((value) => [value, 0]))
  }

  add(value: string, count = 1): void {
    const before = this.#counts.get(value)
    if (before !== undefined) this.#counts.set(value, before + count)
    else if (this.#counts.size < this.#valuesMax) this.#counts.set(value, count)
    else this.#counts.set('other', (this.#counts.get('other') ?? 0) + count)
  }

  *[Symbol.iterator](): Generator<Sample> {
    for (const [value, count] of this.#counts) yield [[value], count]
  }
}
