import { type Backoff, backoffMs, processClock } from '@sluice/runtime'
import type { Arrival, LogRow, LogSource } from './log-source.ts'

export const followLimits = {
  /** A user who watches does not notice this delay, and ClickHouse is idle most of the time. */
  pollIntervalMs: 500,
  /** How much later than its neighbours an entry may be stored: longer than a worker's worst backoff and insert. */
  overlapMs: 120_000,
  /** Most late entries are at most this late. Only every `pollsPerSweep`th poll searches the whole overlap. */
  recentMs: 5_000,
  pollsPerSweep: 20,
  seenMax: 100_000,
  arrivalsPerPollMin: 10_000,
  entriesPerFetchMax: 1_000,
} as const

type FollowedSource = Pick<LogSource, 'newestReceivedMs' | 'arrivals' | 'entries'>
type Print = (rows: readonly LogRow[]) => Promise<void>

/** Pauses while ClickHouse is unavailable. It recovers within seconds after a restart. */
const retryBackoff: Backoff = { baseMs: 500, maxMs: 5_000 }

/**
 * Prints each entry that arrives after its start once, however late it is stored.
 *
 * Entries are not stored in the order in which they were received: a batch may have to wait. So each search starts at the *floor*, some
 * time before the newest known receive time, and the ids found since then are remembered. Searches never go below the floor, so ids
 * below it need not be remembered. The newest receive time is taken from the data, not from the clock: after an outage of an hour, the
 * entries of that hour still arrive roughly in the order in which they were received, and the floor waits for them.
 */
export class Follower {
  readonly #source: FollowedSource
  readonly #print: Print
  /** Receive times by id, in the order in which they were added, which is roughly the order of the times. */
  readonly #seen = new Map<string, number>()
  #newestMs = 0
  #floorMs = 0
  #polls = 0

  constructor(source: FollowedSource, print: Print) {
    this.#source = source
    this.#print = print
  }

  /** Remembers the entries that are already stored. Call it before the first entries are read: none is missed then. */
  async start(): Promise<void> {
    const newestMs = await this.#source.newestReceivedMs(0)
    const fromMs = Math.max(0, newestMs - followLimits.overlapMs)
    // One more than are remembered: it raises the floor, so that stored entries before it do not count as new.
    const stored = await this.#source.arrivals(fromMs, followLimits.seenMax + 1, 'newest')
    for (const arrival of stored) this.markPrinted(arrival)
    this.#advance(newestMs)
  }

  /** Ids are bounded: the floor rises above an id that is forgotten. */
  markPrinted({ id, receivedAtMs }: Arrival): void {
    if (receivedAtMs < this.#floorMs) return
    this.#seen.set(id, receivedAtMs)
    const [oldest] = this.#seen
    if (this.#seen.size <= followLimits.seenMax || oldest === undefined) return
    this.#seen.delete(oldest[0])
    this.#floorMs = Math.max(this.#floorMs, oldest[1] + 1)
  }

  /** Prints the new entries. If it fails halfway, the next call continues with the rest. @returns whether there are more */
  async poll(): Promise<boolean> {
    // Most polls skip the overlap: searching it for late entries would delay the others.
    const isSweep = this.#polls++ % followLimits.pollsPerSweep === 0
    const fromMs = isSweep ? this.#floorMs : Math.max(this.#floorMs, this.#newestMs - followLimits.recentMs)
    // Queried before the arrivals: an entry that is stored between the two queries must not raise the floor.
    const newestMs = await this.#source.newestReceivedMs(this.#newestMs)
    const limit = followLimits.seenMax + followLimits.arrivalsPerPollMin
    const found = await this.#source.arrivals(fromMs, limit, 'oldest')
    const fresh = found.filter(({ id }) => !this.#seen.has(id))
    for (let from = 0; from < fresh.length; from += followLimits.entriesPerFetchMax) {
      const arrivals = fresh.slice(from, from + followLimits.entriesPerFetchMax)
      for await (const rows of this.#source.entries(arrivals)) {
        await this.#print(rows)
        for (const row of rows) this.markPrinted(row)
      }
      // Includes entries that were not returned because their retention has ended meanwhile.
      for (const arrival of arrivals) this.markPrinted(arrival)
    }
    const isBehind = found.length === limit
    this.#advance(isBehind ? (found.at(-1)?.receivedAtMs ?? newestMs) : newestMs)
    return isBehind
  }

  /** Every entry received up to `newestMs` and stored by now has been printed. */
  #advance(newestMs: number): void {
    this.#newestMs = Math.max(this.#newestMs, newestMs)
    this.#floorMs = Math.max(this.#floorMs, this.#newestMs - followLimits.overlapMs)
    for (const [id, receivedAtMs] of this.#seen) {
      if (receivedAtMs >= this.#floorMs) break
      this.#seen.delete(id)
    }
  }
}

/**
 * Polls until the signal is aborted. A failure that `describe` recognizes is reported once and retried until ClickHouse
 * recovers, because ClickHouse may restart at any time. Any other failure is thrown.
 */
export async function followUntil(
  signal: AbortSignal,
  follower: Follower,
  options: {
    random: () => number
    describe: (error: unknown) => string | undefined
    report: (message: string) => Promise<void>
  },
): Promise<void> {
  let failures = 0
  while (!signal.aborted) {
    let pauseMs: number = followLimits.pollIntervalMs
    try {
      if (await follower.poll()) pauseMs = 0
      if (failures > 0) await options.report('ClickHouse is available again')
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      const reason = options.describe(error)
      if (reason === undefined) throw error
      failures += 1
      pauseMs = backoffMs(failures, retryBackoff, options.random())
      if (failures === 1) await options.report(`${reason}; retrying until it recovers`)
    }
    await processClock.sleep(pauseMs, signal)
  }
}
