import { closeRedis } from '@sluice/harness/close-redis'
import { select } from '@sluice/harness/clickhouse'
import type { Services } from '@sluice/local'
import { Completeness } from '@sluice/queue'
import { connectRedis, plainRedis } from '@sluice/runtime'
import { setTimeout as sleep } from 'node:timers/promises'

const INTERVAL_MS = 1_000

/** What the table had when everything received by a time was complete. */
interface Answer {
  readonly untilMs: number
  readonly rows: string
  readonly checksum: string
}

/** The rows received by a time: how many, and a checksum of their ids. */
const SELECT = `SELECT count() AS rows, toString(groupBitXor(cityHash64(id))) AS checksum FROM logs
  WHERE received_at <= fromUnixTimestamp64Milli({untilMs: Int64})`

/** What became of the answers of a reader. */
export interface ReaderFindings {
  readonly answers: number
  /** The times of answers after which rows appeared that had been received by then. */
  readonly wrong: readonly string[]
  /** How old what was complete was at most. */
  readonly behindMaxMs: number
}

/** Asks every second up to which time everything is complete, and which rows there are, as `apps/query` does for an answer. */
export class ChaosReader {
  readonly #services: Services
  readonly #answers: Answer[] = []
  readonly #stopping = new AbortController()
  readonly #done: Promise<void>
  #behindMaxMs = 0

  constructor(services: Services, prefix: string) {
    this.#services = services
    this.#done = this.#run(prefix)
  }

  async #run(prefix: string): Promise<void> {
    const redis = connectRedis(this.#services.redisUrl, { failFast: true, commandTimeoutMs: INTERVAL_MS })
    redis.on('error', () => undefined)
    const completeness = new Completeness({
      durable: plainRedis(redis),
      prefix,
      shards: 1,
      redisMs: Date.now,
      wallMs: Date.now,
    })
    while (!this.#stopping.signal.aborted) {
      const untilMs = await completeness.until()
      if (untilMs !== null) {
        this.#behindMaxMs = Math.max(this.#behindMaxMs, Date.now() - untilMs)
        const [found] = await this.#read(untilMs).catch(() => [])
        if (found !== undefined) this.#answers.push({ untilMs, ...found })
      }
      await sleep(INTERVAL_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
    }
    await closeRedis(redis)
  }

  #read(untilMs: number): Promise<Omit<Answer, 'untilMs'>[]> {
    return select(this.#services.clickhouse, SELECT, { untilMs })
  }

  /** Compares all answers with the table as it is now. */
  async compare(): Promise<ReaderFindings> {
    this.#stopping.abort()
    await this.#done
    const wrong: string[] = []
    for (const { untilMs, rows, checksum } of this.#answers) {
      const [now] = await this.#read(untilMs)
      if (now?.rows === rows && now.checksum === checksum) continue
      wrong.push(`complete up to ${new Date(untilMs).toISOString()}: ${rows} rows then, ${now?.rows} now`)
    }
    return { answers: this.#answers.length, wrong, behindMaxMs: this.#behindMaxMs }
  }
}
