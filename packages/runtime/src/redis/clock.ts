import { describeSkew } from '../timing.ts'
import type { Readiness } from '../process.ts'
import { RegularCheck, type RedisConnection } from './connection.ts'

/** The time is not known yet: Redis has not replied since the process started. */
export class ClockError extends Error {
  override name = 'ClockError'
}

/** A Redis whose clock is set, and a failover to another clock, are noticed within this time. A measurement costs Redis about 10 µs. */
const MEASURE_INTERVAL_MS = 1_000
/** A measurement is wrong by at most half of its round trip. This bound is far below all limits on clocks. */
const ROUND_TRIP_MAX_MS = 2_000
/** How far a later measurement may differ, beyond the errors of both. More means that the clocks have drifted apart, or one was set. */
const DRIFT_MAX_MS = 10
/** A synchronised clock is right within milliseconds. A clock that is off by a minute is not synchronised. */
const PROCESS_SKEW_MAX_MS = 60_000

const READ_CLOCK = "return redis.call('TIME')"

export interface RedisClockOptions {
  readonly redis: RedisConnection
  /** A Redis key of the installation, which is neither read nor written. In a cluster, the clock of its server counts. */
  readonly key: string
  readonly wallMs: () => number
  readonly monotonicMs: () => number
}

interface Measurement {
  /** Redis' clock minus the monotonic clock. */
  readonly offsetMs: number
  readonly roundTripMs: number
}

/**
 * The clock that all processes of an installation share: the one of Redis. It is the monotonic clock of the process, plus an offset that
 * is measured when the connection becomes ready, and every second. So the wall clock of the process may be wrong, and while Redis is
 * unavailable the time goes on.
 *
 * Unknown (before the first reply) → known. The measurement with the shortest round trip counts, until a later one contradicts it.
 */
export class RedisClock extends RegularCheck<RedisClockOptions> {
  protected override readonly intervalMs = MEASURE_INTERVAL_MS
  #best: Measurement | undefined

  /**
   * The time now, ms since 1970, an integer. It may go back by the error of a measurement, or when Redis' clock is set back.
   *
   * @throws ClockError before Redis has replied
   */
  readonly nowMs = (): number => {
    const nowMs = this.knownMs()
    if (nowMs === undefined) throw new ClockError('the time of Redis is not known yet')
    return nowMs
  }

  /** `nowMs`, but undefined before Redis has replied. */
  readonly knownMs = (): number | undefined =>
    this.#best && Math.floor(this.options.monotonicMs() + this.#best.offsetMs)

  /** Ready when the time is known, and the wall clock of this process agrees with it. */
  get readiness(): Readiness {
    if (this.#best === undefined) return { ready: false, reasons: ['the time of Redis is not known yet'] }
    const skewMs = this.options.wallMs() - this.nowMs()
    if (Math.abs(skewMs) <= PROCESS_SKEW_MAX_MS) return { ready: true, reasons: [] }
    return { ready: false, reasons: [`the clock of this process is ${describeSkew(skewMs)} that of Redis`] }
  }

  async check(): Promise<void> {
    const { redis, key, monotonicMs } = this.options
    try {
      const sentAtMs = monotonicMs()
      const redisMs = await readRedisTimeMs(redis, key)
      const answeredAtMs = monotonicMs()
      const roundTripMs = answeredAtMs - sentAtMs
      const measurement = { offsetMs: redisMs - (sentAtMs + answeredAtMs) / 2, roundTripMs }
      if (roundTripMs <= ROUND_TRIP_MAX_MS && (this.#best === undefined || isBetter(measurement, this.#best)))
        this.#best = measurement
    } catch {
      // Redis is unavailable. The owner of the connection logs it, and the last measurement holds.
    }
  }
}

/**
 * The time of the server that has the key, ms since 1970.
 *
 * @param key see `RedisClockOptions.key`
 * @throws if Redis rejects it
 */
export async function readRedisTimeMs(redis: RedisConnection, key: string): Promise<number> {
  const [seconds, microseconds] = (await redis.eval(READ_CLOCK, 1, key)) as [string, string]
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000
}

function isBetter(next: Measurement, best: Measurement): boolean {
  const differenceMs = Math.abs(next.offsetMs - best.offsetMs)
  const errorMaxMs = (next.roundTripMs + best.roundTripMs) / 2 + DRIFT_MAX_MS
  return next.roundTripMs <= best.roundTripMs || differenceMs > errorMaxMs
}
