import { type ProcessReport, type QueueGauge, type QueueReading, readProcesses } from '@sluice/ops'
import { queuedRows, type ShardCount } from '@sluice/queue'
import { type Logger, PeriodicTask, type RedisConnection, withTimeout } from '@sluice/runtime'
import { Problem } from './problems.ts'
import { isoMs } from './times.ts'
import type { CompletePoint } from './visibility.ts'

const pipelineLimits = {
  /** The time between two readings while somebody looks at the page. A reading takes Redis about 0.1 ms. */
  intervalMs: 2_000,
  /** While nobody looks, one reading is taken per so many intervals. So the page begins with the last minutes. */
  idleIntervals: 3,
  /** Nobody looks if the page was not requested for this long. */
  watchedMs: 10_000,
  /** The points of the chart: 180, a few kilobytes of each answer. */
  historyMs: 900_000,
  pointMs: 5_000,
  /** Two commands after each other, which end after a second. */
  readMs: 2_500,
} as const

export interface PipelineOptions {
  readonly redis: RedisConnection
  readonly prefix: string
  readonly gauge: Pick<QueueGauge, 'read' | 'failureOf'>
  readonly shards: Pick<ShardCount, 'names'>
  readonly completePoint: CompletePoint
  /** The clock by which entries are received. It may throw ClockError. */
  readonly wallMs: () => number
  readonly monotonicMs: () => number
  readonly logger: Logger
}

type Counts = Readonly<Record<string, number>>
/** Counts per second since the reading before. Null after the first reading, and after counts have gone back. */
type Rates = Counts | null
interface Counted {
  readonly atMs: number
  readonly counts: Counts
  readonly rates: Rates
}

/**
 * The state of the installation, as `sluice status` has it. It is read regularly, and a request gets the last reading: any number of viewers cost
 * Redis nothing, and one that does not reply delays no answer.
 */
export class Pipeline extends PeriodicTask {
  /** How far the time up to which everything can be seen is behind. Infinite: the time is not known. Undefined before the first reading. */
  completeBehindS: number | undefined
  #answer: string | undefined
  #askedMs = Number.NEGATIVE_INFINITY
  #intervals = 0
  /** Of each shard and process, at the last reading. */
  #counted = new Map<string, Counted>()
  #history: readonly { readonly at: number; readonly figures: object }[] = []

  readonly #monotonicMs: () => number

  constructor(options: PipelineOptions) {
    super(pipelineLimits.intervalMs, async () => {
      const isWatched = options.monotonicMs() - this.#askedMs < pipelineLimits.watchedMs
      if (isWatched || this.#intervals++ % pipelineLimits.idleIntervals === 0) await this.#read(options)
    })
    this.#monotonicMs = options.monotonicMs
  }

  /** The last reading as JSON. @throws Problem `queue_unavailable` if Redis did not reply */
  read(): string {
    this.#askedMs = this.#monotonicMs()
    if (this.#answer !== undefined) return this.#answer
    const detail = 'Redis does not answer, so the state of the pipeline is not known. Retry.'
    throw new Problem('queue_unavailable', detail, { headers: { 'retry-after': '2' } })
  }

  /** Never rejects. */
  async #read(options: PipelineOptions): Promise<void> {
    const { redis, prefix, gauge, completePoint, wallMs, logger } = options
    const completeMs = await completePoint.until().catch(() => null)
    try {
      this.completeBehindS = completeMs === null ? Infinity : Math.max(0, wallMs() - completeMs) / 1_000
      const all = Promise.all([gauge.read(), readProcesses(redis, prefix)])
      const [reading, processes] = await withTimeout(all, pipelineLimits.readMs)
      this.#answer = this.#describe(options, reading, processes, completeMs)
    } catch (error) {
      if (this.#answer !== undefined) logger.warn({ err: error }, 'the pipeline cannot be read')
      this.#answer = undefined
    }
  }

  #describe(
    { gauge, shards: known, wallMs }: PipelineOptions,
    reading: QueueReading,
    reports: readonly ProcessReport[],
    completeMs: number | null,
  ): string {
    const [nowMs, before] = [wallMs(), this.#counted]
    this.#counted = new Map()
    const shards = reading.shards.map(({ totals, ...shard }) => {
      const counts = { accepted: totals.added, stored: totals.inserted, deadLettered: totals.deadLettered }
      return {
        ...shard,
        isReachable: known.names.every((names) => names.shard !== shard.shard || !gauge.failureOf(names)),
        entries: Math.max(0, queuedRows(totals)),
        rates: this.#rates(`shard ${shard.shard}`, counts, nowMs, before),
      }
    })
    const processes = reports.map(({ counts = {}, ...report }) => {
      const atMs = nowMs - report.ageS * 1_000
      return { ...report, rates: report.isSilent ? null : this.#rates(report.id, counts, atMs, before) }
    })
    const lags = processes.flatMap(({ lag, isSilent }) => (isSilent ? [] : (lag?.maxS ?? [])))
    const figures = {
      accepted: sum(shards, 'accepted'),
      stored: sum(shards, 'stored'),
      rejected: sum(processes, 'rejected'),
      deadLettered: sum(shards, 'deadLettered'),
      backlog: shards.reduce((total, { entries }) => total + entries, 0),
      oldestAgeS: reading.oldestAgeS,
      lagS: lags.length === 0 ? null : Math.max(...lags),
      completeBehindS: completeMs === null ? null : this.completeBehindS,
    }
    if (nowMs - (this.#history.at(-1)?.at ?? 0) >= pipelineLimits.pointMs)
      this.#history = [
        ...this.#history.filter(({ at }) => nowMs - at < pipelineLimits.historyMs),
        { at: nowMs, figures },
      ]
    const completeUntil = completeMs === null ? null : isoMs(completeMs)
    const parts = { shards, processes, servers: reading.servers, history: this.#history }
    return JSON.stringify(forClients({ at: isoMs(nowMs), completeUntil, ...figures, ...parts }))
  }

  #rates(of: string, counts: Counts, atMs: number, all: ReadonlyMap<string, Counted>): Rates {
    const before = all.get(of)
    const seconds = (atMs - (before?.atMs ?? atMs)) / 1_000
    let next = before
    // Otherwise it is the same report of a process.
    if (before === undefined || seconds >= 1) {
      const changes = Object.entries(counts).map(
        ([name, count]) => [name, (count - (before?.counts[name] ?? Infinity)) / seconds] as const,
      )
      const isKnown = changes.every(([, rate]) => rate >= 0)
      next = { atMs, counts, rates: isKnown ? Object.fromEntries(changes) : null }
    }
    if (next !== undefined) this.#counted.set(of, next)
    return next?.rates ?? null
  }
}

function sum(parts: readonly { readonly rates: Rates }[], name: string): number | null {
  const rates = parts.flatMap((part) => part.rates?.[name] ?? [])
  return rates.length === 0 ? null : rates.reduce((total, rate) => total + rate, 0)
}

const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** With names and numbers as the API has them. */
function forClients(value: unknown): unknown {
  if (typeof value === 'number') return Math.round(value * 1_000) / 1_000
  if (Array.isArray(value)) return value.map(forClients)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snake(name), forClients(member)]))
}
