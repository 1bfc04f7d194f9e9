import { describeSkew, PeriodicTask, type Readiness } from '@sluice/runtime'
import type { ClickHouseClient } from './client.ts'
import { describeError } from './insert-errors.ts'
import { lookUp, type QueryWatcher } from './query-watch.ts'

/** Nothing may be inserted or looked up now: ClickHouse's clock is wrong, or unknown. Transient. */
export class ClockSkewError extends Error {
  override name = 'ClockSkewError'
}

export const clickhouseClockLimits = {
  /**
   * How far the clocks of ClickHouse and Redis may be apart. ClickHouse may drop a row this much early: 0.7 % of the shortest retention. A clock
   * that is never synchronised drifts by ten minutes in about two months. A wrong time zone is at least fifteen minutes.
   */
  skewMaxMs: 600_000,
  /** A query of the clock takes ClickHouse about a millisecond. */
  measureIntervalMs: 5_000,
  /** An older measurement does not count. Two intervals, so that usually no insert waits for a measurement. */
  measurementAgeMaxMs: 10_000,
} as const

export interface ClickHouseClockOptions {
  readonly client: Pick<ClickHouseClient, 'query'>
  /** The clock of Redis, ms since 1970. Undefined before Redis has replied. */
  readonly redisMs: () => number | undefined
  readonly monotonicMs: () => number
  /** Gives up a measurement while ClickHouse is silent, so that no insert waits longer for it. */
  readonly watch: QueryWatcher
}

/**
 * Compares the clocks of ClickHouse and Redis every five seconds. The API stamps rows by the clock of Redis, and ClickHouse drops
 * them by its own: with a clock that is far ahead, it drops rows that it has just acknowledged.
 *
 * Unknown (before the first response, and ten seconds after the last one) → right or wrong.
 */
export class ClickHouseClock {
  readonly #options: ClickHouseClockOptions
  /** The last measurement. The offset is ClickHouse's clock minus the monotonic clock. */
  #last: { readonly offsetMs: number; readonly roundTripMs: number; readonly sentAtMs: number } | undefined
  #measuring: Promise<void> | undefined
  #task: PeriodicTask | undefined

  constructor(options: ClickHouseClockOptions) {
    this.#options = options
  }

  start(): void {
    const measure = (): Promise<void> => this.#measure().catch(() => undefined)
    this.#task = new PeriodicTask(clickhouseClockLimits.measureIntervalMs, measure)
    this.#task.runNow()
  }

  stop(): void {
    this.#task?.stop()
  }

  /**
   * Resolves if rows may be inserted and looked up now: the clocks agree. It queries ClickHouse only without a recent measurement.
   * @throws ClockSkewError
   */
  async check(): Promise<void> {
    const measuredAtMs = this.#last?.sentAtMs ?? Number.NEGATIVE_INFINITY
    const ageMs = this.#options.monotonicMs() - measuredAtMs
    if (ageMs > clickhouseClockLimits.measurementAgeMaxMs) await this.#measure()
    const problem = this.#problem()
    if (problem !== undefined) throw new ClockSkewError(problem)
  }

  /** Not ready while the last known clock of ClickHouse is wrong. If ClickHouse is unavailable, the operations that need it report that. */
  get readiness(): Readiness {
    const problem = this.#last === undefined ? undefined : this.#problem()
    return problem === undefined ? { ready: true, reasons: [] } : { ready: false, reasons: [problem] }
  }

  /** Why rows must not be inserted; undefined if they may be. */
  #problem(): string | undefined {
    if (this.#last === undefined) return 'the clock of ClickHouse is not known yet'
    const { monotonicMs } = this.#options
    const { offsetMs, roundTripMs } = this.#last
    const redisMs = this.#options.redisMs()
    if (redisMs === undefined) return 'the time of Redis is not known yet'
    const skewMs = monotonicMs() + offsetMs - redisMs
    const isRight = Math.abs(skewMs) + roundTripMs / 2 <= clickhouseClockLimits.skewMaxMs
    return isRight ? undefined : `the clock of ClickHouse is ${describeSkew(skewMs)} that of Redis`
  }

  /** One measurement runs at a time. @throws ClockSkewError if ClickHouse does not respond */
  #measure(): Promise<void> {
    this.#measuring ??= this.#read().finally(() => {
      this.#measuring = undefined
    })
    return this.#measuring
  }

  async #read(): Promise<void> {
    const { client, monotonicMs, watch } = this.#options
    try {
      const sentAtMs = monotonicMs()
      const query = "SELECT toString(toUnixTimestamp64Milli(now64(3, 'UTC'))) AS nowMs"
      const [row] = await lookUp<{ nowMs: string }>(client, watch, { query })
      const roundTripMs = monotonicMs() - sentAtMs
      this.#last = { offsetMs: Number(row?.nowMs) - sentAtMs - roundTripMs / 2, roundTripMs, sentAtMs }
    } catch (error) {
      // A code such as MEMORY_LIMIT_EXCEEDED says nothing about the rows. The caller must not split a batch because of it.
      throw new ClockSkewError(`the clock of ClickHouse cannot be read: ${describeError(error)}`)
    }
  }
}
