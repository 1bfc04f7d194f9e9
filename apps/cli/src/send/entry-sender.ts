import { limits } from '@sluice/schema'
import type { Rejection } from './responses.ts'

/** An entry to be sent, and its origin. */
export interface OutgoingEntry {
  /** JSON text. */
  readonly entry: string
  /** The size of the entry in UTF-8. */
  readonly bytes: number
  /** Human-readable: `file:line`. */
  readonly origin: string
  /** The line in the whole input. Ascends from entry to entry. */
  readonly line: number
}

export const sendLimits = {
  /** A request is sent when it has the maximum number of entries … */
  entriesPerRequestMax: limits.entriesPerRequestMax,
  /** … or before its entries exceed this size, which keeps the requests in flight small in total … */
  requestBytesMax: 1024 * 1024,
  /** … or when its first entry has waited this long: the lines of a slow source are sent within about a second. */
  requestAgeMaxMs: 1_000,
  /** Enough to keep the API busy over a slow connection. More requests would only wait there. */
  requestsInFlightMax: 4,
  /** Reserved for the request around an entry that is sent alone: `{"logs":[` and `]}`. */
  envelopeBytesMax: 64,
} as const

/** The longest entry that can be sent at all. */
export const entryBytesMax = limits.bodyBytesMax - sendLimits.envelopeBytesMax

type Post = (entries: readonly string[]) => Promise<{ accepted: number; rejections: readonly Rejection[] }>

export interface SenderEvents {
  onResponse(counts: { entries: number; accepted: number }): void
  onRejection(origin: string, rejection: Rejection): void
  /** Called for entries without a response: they were not sent, or their outcome is unknown. */
  onUnanswered(entries: readonly OutgoingEntry[]): void
}

/**
 * Gathers entries into requests, and sends several requests at a time. The order of the entries is not kept.
 *
 * Sends until a request fails. Then `failed` is aborted, `end` throws the failure, and all entries added later count as
 * unanswered.
 */
export class EntrySender {
  readonly #post: Post
  readonly #events: SenderEvents
  readonly #inFlight = new Set<Promise<void>>()
  readonly #stop = new AbortController()
  #gathered: OutgoingEntry[] = []
  #gatheredBytes = 0
  #timer: NodeJS.Timeout | undefined
  #failure: unknown

  constructor(post: Post, events: SenderEvents) {
    this.#post = post
    this.#events = events
  }

  /** Aborted when a request could not be sent. */
  get failed(): AbortSignal {
    return this.#stop.signal
  }

  /** Resolves when there is room for the next entry. Must not be called again before that. */
  async add(outgoing: OutgoingEntry): Promise<void> {
    if (this.#gatheredBytes + outgoing.bytes > sendLimits.requestBytesMax) await this.#flush()
    this.#gathered.push(outgoing)
    this.#gatheredBytes += outgoing.bytes
    if (this.#gathered.length >= sendLimits.entriesPerRequestMax) await this.#flush()
    else this.#timer ??= setTimeout(() => void this.#flush(), sendLimits.requestAgeMaxMs)
  }

  /**
   * Sends the remaining entries and awaits all responses.
   *
   * @throws the error of the first request that could not be sent
   */
  async end(): Promise<void> {
    await this.#flush()
    await Promise.all(this.#inFlight)
    if (this.#stop.signal.aborted) throw this.#failure
  }

  /**
   * Waits until another request may be sent, and takes the gathered entries only then, unless another call has taken
   * them: no second set of entries ever waits. Never rejects.
   */
  async #flush(): Promise<void> {
    while (this.#inFlight.size >= sendLimits.requestsInFlightMax) await Promise.race(this.#inFlight)
    clearTimeout(this.#timer)
    this.#timer = undefined
    const outgoing = this.#gathered
    if (outgoing.length === 0) return
    this.#gathered = []
    this.#gatheredBytes = 0
    const sending = this.#send(outgoing).finally(() => this.#inFlight.delete(sending))
    this.#inFlight.add(sending)
  }

  async #send(outgoing: readonly OutgoingEntry[]): Promise<void> {
    if (this.#stop.signal.aborted) return this.#events.onUnanswered(outgoing)
    try {
      const { accepted, rejections } = await this.#post(outgoing.map(({ entry }) => entry))
      this.#events.onResponse({ entries: outgoing.length, accepted })
      for (const rejection of rejections) {
        this.#events.onRejection(outgoing[rejection.index]?.origin ?? 'an entry', rejection)
      }
    } catch (error) {
      this.#events.onUnanswered(outgoing)
      if (this.#stop.signal.aborted) return
      this.#failure = error
      this.#stop.abort()
    }
  }
}
