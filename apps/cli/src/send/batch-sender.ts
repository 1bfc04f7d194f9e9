import { limits } from '@sluice/schema'
import type { Rejection } from './answers.ts'

/** One entry on its way, and where it is from. */
export interface Outgoing {
  /** JSON text. */
  readonly entry: string
  /** Of the entry, in UTF-8. */
  readonly bytes: number
  /** For people: `file:line`. */
  readonly origin: string
}

export const sendLimits = {
  /** A batch is sent when it has as many entries as a request may have … */
  entriesPerBatchMax: limits.entriesPerBatchMax,
  /** … or before its entries are more bytes than this, so that the batches under way stay small together … */
  batchBytesMax: 1024 * 1024,
  /** … or when its first entry has waited this long: a slow source is seen within about a second. */
  batchAgeMaxMs: 1_000,
  /** Enough to keep the API busy over a slow line; more would only wait there. */
  batchesInFlightMax: 4,
  /** What the request around an entry that is sent alone may take: `{"logs":[` and `]}`. */
  envelopeBytesMax: 64,
} as const

/** The longest entry that can be sent at all. */
export const entryBytesMax = limits.bodyBytesMax - sendLimits.envelopeBytesMax

type Post = (entries: readonly string[]) => Promise<{ accepted: number; rejections: readonly Rejection[] }>

export interface SenderEvents {
  onTaken(taken: { entries: number; accepted: number }): void
  onRejection(origin: string, rejection: Rejection): void
  /** Entries that no answer speaks of: they were not sent, or it is unknown what became of them. */
  onUnanswered(entries: number): void
}

/**
 * Gathers entries into batches and sends several at a time; their order is not kept.
 *
 * Sending, until a batch fails: then `failure` says why, `failed` is aborted, and all that is added afterwards is
 * unanswered.
 */
export class BatchSender {
  readonly #post: Post
  readonly #events: SenderEvents
  readonly #inFlight = new Set<Promise<void>>()
  readonly #stop = new AbortController()
  #batch: Outgoing[] = []
  #batchBytes = 0
  #timer: NodeJS.Timeout | undefined
  #failure: unknown

  constructor(post: Post, events: SenderEvents) {
    this.#post = post
    this.#events = events
  }

  /** Aborted once a batch could not be sent. */
  get failed(): AbortSignal {
    return this.#stop.signal
  }

  /** Resolves when there is room for the next one. Not to be called again before that. */
  async add(outgoing: Outgoing): Promise<void> {
    if (this.#batchBytes + outgoing.bytes > sendLimits.batchBytesMax) await this.#flush()
    this.#batch.push(outgoing)
    this.#batchBytes += outgoing.bytes
    if (this.#batch.length >= sendLimits.entriesPerBatchMax) await this.#flush()
    else this.#timer ??= setTimeout(() => void this.#flush(), sendLimits.batchAgeMaxMs)
  }

  /**
   * Sends what is left and awaits all answers.
   *
   * @throws what the first batch that could not be sent failed with
   */
  async end(): Promise<void> {
    await this.#flush()
    await Promise.all(this.#inFlight)
    if (this.#stop.signal.aborted) throw this.#failure
  }

  /**
   * Waits for its turn, and only then takes the batch, if nobody else has: so there is never more than one that waits.
   * Never rejects.
   */
  async #flush(): Promise<void> {
    while (this.#inFlight.size >= sendLimits.batchesInFlightMax) await Promise.race(this.#inFlight)
    clearTimeout(this.#timer)
    this.#timer = undefined
    const batch = this.#batch
    if (batch.length === 0) return
    this.#batch = []
    this.#batchBytes = 0
    const sending = this.#send(batch).finally(() => this.#inFlight.delete(sending))
    this.#inFlight.add(sending)
  }

  async #send(batch: readonly Outgoing[]): Promise<void> {
    if (this.#stop.signal.aborted) return this.#events.onUnanswered(batch.length)
    try {
      const { accepted, rejections } = await this.#post(batch.map(({ entry }) => entry))
      this.#events.onTaken({ entries: batch.length, accepted })
      for (const rejection of rejections) {
        this.#events.onRejection(batch[rejection.index]?.origin ?? 'an entry', rejection)
      }
    } catch (error) {
      this.#events.onUnanswered(batch.length)
      if (this.#stop.signal.aborted) return
      this.#failure = error
      this.#stop.abort()
    }
  }
}
