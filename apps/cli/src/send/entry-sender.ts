import {
  type DropReason,
  type QueuedEntry,
  type Rejection as ClientRejection,
  type Retry,
  type Settlement,
  SluiceClient,
  type SluiceError,
} from '@sluice/client'
import { limits } from '@sluice/schema'
import { CliError, describeNetworkError, wasNeverSent } from '../errors.ts'
import type { ApiAccess } from '../service-access.ts'
import { redactUrl } from '../terminal.ts'

/** An entry to be sent, and its origin. */
export interface OutgoingEntry {
  /** JSON text. */
  readonly entry: string
  /** The size of the entry in UTF-8. */
  readonly bytes: number
  /** Human-readable: `file:line`. */
  readonly origin: string
  /** The lines that it was made of, in the whole input. */
  readonly firstLine: number
  readonly lastLine: number
}

/** Why the API rejected an entry. */
export interface Rejection {
  /** JSON Pointer to the invalid field of the entry; '' for the entry itself. */
  readonly path: string
  readonly message: string
}

const sendLimits = {
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

/** The requests in flight, one that is gathered, and one that it must have room for. */
const QUEUE_ENTRIES_MAX = (sendLimits.requestsInFlightMax + 2) * sendLimits.entriesPerRequestMax

export interface SenderEvents {
  onResponse(counts: { entries: number; accepted: number }): void
  onRejection(origin: string, rejection: Rejection): void
  /** Called for entries without a response: they were not sent, or their outcome is unknown. */
  onUnanswered(entries: readonly OutgoingEntry[]): void
}

export interface SenderOptions {
  readonly api: ApiAccess
  /** How long a request is retried, at least. */
  readonly retryForMs: number
  /** Aborts pauses, and with them the retries. Requests in flight are awaited. */
  readonly interrupted: AbortSignal
  readonly nowMs: () => number
  readonly random: () => number
  /** Called when all sending pauses. */
  readonly onPause: (reason: string, pauseMs: number) => void
}

/** Thrown when a request cannot be sent. The requests after it would fail as well. */
class SendError extends CliError {
  override name = 'SendError'
}

/**
 * Sends entries with the client, and stops at the first request that fails permanently: then `failed` is aborted, `end` throws the
 * failure, and all entries added later count as unanswered.
 */
export class EntrySender {
  readonly #options: SenderOptions
  readonly #events: SenderEvents
  readonly #client: SluiceClient
  readonly #stop = new AbortController()
  readonly #unanswered = new WeakSet<OutgoingEntry>()
  #resumeAtMs = 0
  #hasReceivedResponse = false
  #failure: SendError | undefined

  constructor(options: SenderOptions, events: SenderEvents) {
    const { api, retryForMs, interrupted, random } = options
    this.#options = options
    this.#events = events
    this.#client = new SluiceClient(
      {
        url: api.url,
        apiKey: api.key,
        batchEntriesMax: sendLimits.entriesPerRequestMax,
        batchBytesMax: sendLimits.requestBytesMax,
        flushIntervalMs: sendLimits.requestAgeMaxMs,
        requestsInFlightMax: sendLimits.requestsInFlightMax,
        queueEntriesMax: QUEUE_ENTRIES_MAX,
        retryForMs,
        flushOnExit: false,
        onSettled: (settlement) => this.#onSettled(settlement),
        onRejected: (rejection) => this.#onRejected(rejection),
        onDropped: (entries, reason) => this.#onDropped(entries, reason),
        onRetry: (retry) => this.#onRetry(retry),
        onError: (error) => this.#onError(error),
      },
      { random },
    )
    interrupted.addEventListener('abort', () => this.#giveUpPause())
  }

  /** Aborted when a request could not be sent. */
  get failed(): AbortSignal {
    return this.#stop.signal
  }

  /** Resolves when the entry is in the queue. Must not be called again before that. */
  async add(outgoing: OutgoingEntry): Promise<void> {
    await this.#client.waitForRoom(outgoing.bytes)
    this.#client.sendJson(outgoing.entry, outgoing)
  }

  /**
   * Sends the remaining entries and awaits all responses.
   *
   * @throws the error of the first request that could not be sent
   */
  async end(): Promise<void> {
    if (this.#failure === undefined)
      await this.#close(this.#options.interrupted.aborted ? 'try-once' : 'retry')
    else await this.#close('give-up')
    if (this.#failure !== undefined) throw this.#failure
  }

  #onSettled({ outcome, entries, accepted, reason, cause }: Settlement): void {
    this.#hasReceivedResponse ||= outcome === 'answered' || outcome === 'rejected'
    if (outcome === 'answered') this.#events.onResponse({ entries: entries.length, accepted })
    else if (outcome === 'rejected') {
      this.#countUnanswered(entries)
      this.#fail(`${this.#apiName} rejected the request: ${reason}`)
    } else if (outcome === 'retries' || outcome === 'outcome-unknown') {
      this.#fail(
        this.#neverAnswered(cause) ?? `${this.#apiName}: ${describeFailure(reason, cause)}; gave up retrying`,
      )
    }
  }

  #onRejected({ tag, error }: ClientRejection): void {
    const outgoing = tag as OutgoingEntry
    // Of a request that was rejected as a whole, only the reason is shown.
    if (!this.#unanswered.has(outgoing)) this.#events.onRejection(outgoing.origin, error)
  }

  #onDropped(entries: readonly QueuedEntry[], reason: DropReason): void {
    this.#countUnanswered(entries)
    if (reason === 'closed' && this.#failure === undefined)
      this.#failure = new SendError('interrupted while waiting to retry')
  }

  #countUnanswered(entries: readonly QueuedEntry[]): void {
    const outgoing = entries.map(({ tag }) => tag as OutgoingEntry)
    for (const each of outgoing) this.#unanswered.add(each)
    this.#events.onUnanswered(outgoing)
  }

  #onRetry({ reason, cause, delayMs, hasReceivedResponse }: Retry): void {
    const { nowMs, onPause, interrupted } = this.#options
    this.#hasReceivedResponse ||= hasReceivedResponse
    const neverAnswered = this.#neverAnswered(cause)
    if (neverAnswered !== undefined) return this.#fail(neverAnswered)
    // The other requests in flight usually fail for the same reason; it is reported once.
    if (nowMs() >= this.#resumeAtMs) onPause(describeFailure(reason, cause), delayMs)
    this.#resumeAtMs = Math.max(this.#resumeAtMs, nowMs() + delayMs)
    if (interrupted.aborted) this.#giveUpPause()
  }

  #onError(error: SluiceError): void {
    if (error.kind !== 'configuration') return
    const { status, reason } = error
    const hint = status === 401 && reason.startsWith('the API key') ? KEY_HINT : ''
    this.#fail(`${this.#apiName} rejected the request: ${reason}${hint}`)
  }

  /** @returns the failure if the API has never responded: the address is probably wrong, and retries would not help */
  #neverAnswered(cause: unknown): string | undefined {
    if (this.#hasReceivedResponse || !wasNeverSent(cause)) return undefined
    return `${this.#apiName} ${describeNetworkError(cause)}; \`npm start\` starts a local API`
  }

  get #apiName(): string {
    return `the API at ${redactUrl(this.#options.api.url)}`
  }

  #fail(message: string): void {
    if (this.#failure !== undefined) return
    this.#failure = new SendError(message)
    void this.#close('give-up')
    this.#stop.abort()
  }

  #giveUpPause(): void {
    if (this.#options.nowMs() < this.#resumeAtMs) void this.#close('try-once')
  }

  /** Each attempt has a timeout, and the retries have their end. The close needs none. */
  async #close(remaining: 'retry' | 'try-once' | 'give-up'): Promise<void> {
    await this.#client.close({ remaining, timeoutMs: Infinity })
  }
}

const KEY_HINT = '; set SLUICE_API_KEY or pass --api-key'

/** Why an attempt failed: what `fetch` threw, or what the client says. */
function describeFailure(reason: string | undefined, cause: unknown): string {
  const text = describeNetworkError(cause)
  return text === undefined ? (reason ?? 'no reason') : `the API ${text}`
}
