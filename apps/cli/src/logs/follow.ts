import { setTimeout as sleep } from 'node:timers/promises'
import { type Backoff, backoffMs } from '@sluice/runtime'
import { type Arrival, FollowWindow } from './follow-window.ts'
import type { LogRow } from './query.ts'

/** Where new entries are found: see LogSource. */
export interface FollowSource {
  newestReceivedMs(fromMs: number): Promise<number>
  arrivals(fromMs: number, limit: number, end: 'oldest' | 'newest'): Promise<Arrival[]>
  entries(found: readonly Arrival[]): AsyncIterable<readonly (LogRow & Arrival)[]>
}

export const followLimits = {
  /** Short for a person, long for ClickHouse. */
  pollIntervalMs: 500,
  /** How much later than its neighbours an entry may be stored: longer than a worker's worst backoff and insert. */
  overlapMs: 120_000,
  /** Most late entries are at most this late, so only each `pollsPerSweep`th look goes back through all of the overlap. */
  recentMs: 5_000,
  pollsPerSweep: 20,
  /** Some 15 MB of ids. */
  seenMax: 100_000,
  /** New entries in one look; the next one goes on with the rest. */
  arrivalsPerPollMax: 10_000,
  /** A request of some 50 KB; the entries themselves are printed as they come. */
  entriesPerFetchMax: 1_000,
} as const

/** Pauses while ClickHouse is away. It is back within seconds after a restart. */
const retryBackoff: Backoff = { baseMs: 500, maxMs: 5_000 }

/** Finds the entries that arrive after its start, each once. */
export class Follower {
  readonly #source: FollowSource
  readonly #print: (rows: readonly LogRow[]) => Promise<void>
  readonly #window = new FollowWindow(followLimits)
  #polls = 0
  /** More has arrived than one look takes. */
  #isBehind = false

  constructor(source: FollowSource, print: (rows: readonly LogRow[]) => Promise<void>) {
    this.#source = source
    this.#print = print
  }

  /** Takes note of what is stored already. Call it before reading the entries to begin with, so that none is missed. */
  async start(): Promise<void> {
    const newestMs = await this.#source.newestReceivedMs(0)
    const fromMs = Math.max(0, newestMs - followLimits.overlapMs)
    const stored = await this.#source.arrivals(fromMs, followLimits.seenMax, 'newest')
    for (const arrival of stored) this.#window.add(arrival)
    this.#window.advance(newestMs)
    // There may be more below; had they been wanted, they would have been read to begin with.
    const oldest = stored[0]
    if (stored.length === followLimits.seenMax && oldest !== undefined)
      this.#window.raise(oldest.receivedAtMs)
  }

  /** Counts an entry as printed. */
  markPrinted(arrival: Arrival): void {
    this.#window.add(arrival)
  }

  /**
   * Prints what has arrived. If it fails halfway, the next call goes on with the rest.
   *
   * @returns whether there is more
   */
  async poll(): Promise<{ isBehind: boolean }> {
    const window = this.#window
    const fromMs = this.#nextLook()
    // Asked before the arrivals: what is stored in between must not raise the floor.
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

  /** Since when to look: what is late must not slow down what is in time. */
  #nextLook(): number {
    const { floorMs, newestMs } = this.#window
    const isSweep = this.#polls++ % followLimits.pollsPerSweep === 0
    if (isSweep) return floorMs
    return Math.max(floorMs, this.#isBehind ? newestMs : newestMs - followLimits.recentMs)
  }

  async #printEntries(arrived: readonly Arrival[]): Promise<void> {
    for await (const rows of this.#source.entries(arrived)) {
      await this.#print(rows)
      for (const row of rows) this.#window.add(row)
    }
    // Some may be gone meanwhile, at the end of their retention.
    for (const arrival of arrived) this.#window.add(arrival)
  }
}

/**
 * Polls until the signal. Failures that `describe` knows are told, once each time, and waited out: ClickHouse may
 * restart while somebody follows. Others are thrown.
 */
export async function followUntil(
  signal: AbortSignal,
  follower: Follower,
  options: {
    random: () => number
    describe: (error: unknown) => string | undefined
    tell: (message: string) => Promise<void>
  },
): Promise<void> {
  let failures = 0
  while (!signal.aborted) {
    let pauseMs: number = followLimits.pollIntervalMs
    try {
      const { isBehind } = await follower.poll()
      if (isBehind) pauseMs = 0
      if (failures > 0) await options.tell('ClickHouse answers again')
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      const reason = options.describe(error)
      if (reason === undefined) throw error
      failures += 1
      pauseMs = backoffMs(failures, retryBackoff, options.random())
      if (failures === 1) await options.tell(`${reason}; trying again until it answers`)
    }
    // The signal ends the pause early; the loop's condition sees it.
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
  }
}
