import { setTimeout as sleep } from 'node:timers/promises'
import { type Backoff, backoffMs } from '@sluice/runtime'
import type { LogRow } from './queries.ts'

/** An entry that was found, without its content. */
export interface Arrival {
  readonly id: string
  readonly receivedAtMs: number
}

/**
 * Remembers which entries were printed: following prints each entry once, however late it is stored.
 *
 * Entries are not stored in the order in which they were received. Several API processes receive them, workers insert
 * them in batches, and a batch may have to wait. Each poll therefore starts at the *floor*, some time before the newest
 * known receive time, and the ids found since then are remembered. Polls never go below the floor. Ids below it need
 * not be remembered, and no entry is printed twice.
 *
 * The newest receive time is taken from the data, not from the clock. After an outage of an hour, the entries of that
 * hour still arrive roughly in the order in which they were received, and the floor waits for them.
 */
export class FollowWindow {
  readonly #overlapMs: number
  readonly #seenMax: number
  /** Receive times by id, in the order in which they were added, which is roughly the order of the times. */
  readonly #seen = new Map<string, number>()
  #newestMs = 0
  #floorMs = 0

  /**
   * @param overlapMs how much later than its neighbours an entry may be stored
   * @param seenMax maximum number of remembered ids; when there are more, the floor rises
   */
  constructor({ overlapMs, seenMax }: { overlapMs: number; seenMax: number }) {
    this.#overlapMs = overlapMs
    this.#seenMax = seenMax
  }

  /** Polls search for entries received at this time or later. */
  get floorMs(): number {
    return this.#floorMs
  }

  /** The newest known receive time. */
  get newestMs(): number {
    return this.#newestMs
  }

  /** The number of remembered ids. */
  get size(): number {
    return this.#seen.size
  }

  /** The number of remembered ids that were received at this time or later. */
  countSince(fromMs: number): number {
    let count = 0
    for (const receivedAtMs of this.#seen.values()) if (receivedAtMs >= fromMs) count += 1
    return count
  }

  has(id: string): boolean {
    return this.#seen.has(id)
  }

  add({ id, receivedAtMs }: Arrival): void {
    if (receivedAtMs < this.#floorMs) return
    this.#seen.set(id, receivedAtMs)
    if (this.#seen.size <= this.#seenMax) return
    const [oldest] = this.#seen
    if (oldest === undefined) return
    this.#seen.delete(oldest[0])
    this.raiseFloorAbove(oldest[1])
  }

  /** Excludes everything received up to this time from further polls. */
  raiseFloorAbove(receivedAtMs: number): void {
    this.#floorMs = Math.max(this.#floorMs, receivedAtMs + 1)
  }

  /** Call when every entry received up to `newestMs` and stored by now has been added. */
  advance(newestMs: number): void {
    this.#newestMs = Math.max(this.#newestMs, newestMs)
    this.#floorMs = Math.max(this.#floorMs, this.#newestMs - this.#overlapMs)
    for (const [id, receivedAtMs] of this.#seen) {
      if (receivedAtMs >= this.#floorMs) break
      this.#seen.delete(id)
    }
  }
}

/** Finds new entries: see LogSource. */
export interface FollowSource {
  newestReceivedMs(fromMs: number): Promise<number>
  arrivals(fromMs: number, limit: number, end: 'oldest' | 'newest'): Promise<Arrival[]>
  entries(found: readonly Arrival[]): AsyncIterable<readonly (LogRow & Arrival)[]>
}

export const followLimits = {
  /** A user who watches does not notice this delay, and ClickHouse is idle most of the time. */
  pollIntervalMs: 500,
  /** How much later than its neighbours an entry may be stored: longer than a worker's worst backoff and insert. */
  overlapMs: 120_000,
  /** Most late entries are at most this late. Only every `pollsPerSweep`th poll searches the whole overlap. */
  recentMs: 5_000,
  pollsPerSweep: 20,
  /** About 15 MB of ids. */
  seenMax: 100_000,
  /** Maximum of new entries per poll; the next poll continues with the rest. */
  arrivalsPerPollMax: 10_000,
  /** A request of about 50 KB. The entries themselves are printed as they are received. */
  entriesPerFetchMax: 1_000,
} as const

/** Pauses while ClickHouse is unavailable. It recovers within seconds after a restart. */
const retryBackoff: Backoff = { baseMs: 500, maxMs: 5_000 }

/** Finds the entries that arrive after its start, each once. */
export class Follower {
  readonly #source: FollowSource
  readonly #print: (rows: readonly LogRow[]) => Promise<void>
  readonly #window = new FollowWindow(followLimits)
  #polls = 0
  /** Whether the last poll left new entries for the next one. */
  #isBehind = false

  constructor(source: FollowSource, print: (rows: readonly LogRow[]) => Promise<void>) {
    this.#source = source
    this.#print = print
  }

  /** Remembers the entries that are already stored. Call it before the first entries are read: none is missed then. */
  async start(): Promise<void> {
    const newestMs = await this.#source.newestReceivedMs(0)
    const fromMs = Math.max(0, newestMs - followLimits.overlapMs)
    const stored = await this.#source.arrivals(fromMs, followLimits.seenMax, 'newest')
    for (const arrival of stored) this.#window.add(arrival)
    this.#window.advance(newestMs)
    // Stored entries that are older than these must not count as new.
    const oldest = stored[0]
    if (stored.length === followLimits.seenMax && oldest !== undefined) {
      this.#window.raiseFloorAbove(oldest.receivedAtMs)
    }
  }

  markPrinted(arrival: Arrival): void {
    this.#window.add(arrival)
  }

  /**
   * Prints the new entries. If it fails halfway, the next call continues with the rest.
   *
   * @returns whether there are more
   */
  async poll(): Promise<{ isBehind: boolean }> {
    const window = this.#window
    const fromMs = this.#nextFromMs()
    // Queried before the arrivals: an entry that is stored between the two queries must not raise the floor.
    const newestMs = await this.#source.newestReceivedMs(window.newestMs)
    const limit = window.countSince(fromMs) + followLimits.arrivalsPerPollMax
    const found = await this.#source.arrivals(fromMs, limit, 'oldest')
    const fresh = found.filter(({ id }) => !window.has(id))
    for (let from = 0; from < fresh.length; from += followLimits.entriesPerFetchMax) {
      await this.#printEntries(fresh.slice(from, from + followLimits.entriesPerFetchMax))
    }
    this.#isBehind = found.length === limit
    window.advance(this.#isBehind ? (found.at(-1)?.receivedAtMs ?? newestMs) : newestMs)
    return { isBehind: this.#isBehind }
  }

  /** Where the next poll starts. Most polls skip the overlap: searching it for late entries would delay the others. */
  #nextFromMs(): number {
    const { floorMs, newestMs } = this.#window
    const isSweep = this.#polls++ % followLimits.pollsPerSweep === 0
    if (isSweep) return floorMs
    return Math.max(floorMs, this.#isBehind ? newestMs : newestMs - followLimits.recentMs)
  }

  async #printEntries(arrivals: readonly Arrival[]): Promise<void> {
    for await (const rows of this.#source.entries(arrivals)) {
      await this.#print(rows)
      for (const row of rows) this.#window.add(row)
    }
    // Includes entries that were not returned because their retention has ended meanwhile.
    for (const arrival of arrivals) this.#window.add(arrival)
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
      const { isBehind } = await follower.poll()
      if (isBehind) pauseMs = 0
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
    // An abort ends the pause early. The condition of the loop handles it.
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
  }
}
