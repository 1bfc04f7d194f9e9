import { type QueuedEntry, type Retry, type Settlement, SluiceClient } from '@sluice/client'
import { limits } from '@sluice/schema'
import { CliError, describeNetworkError, wasNeverSent } from '../errors.ts'
import type { HttpAccess } from '../service-access.ts'
import { redactUrl } from '../terminal.ts'
import type { LineRange } from './line-ranges.ts'
import type { SendReport } from './report.ts'

/** An entry to be sent, and its origin: its lines in the whole input. */
export interface OutgoingEntry extends LineRange {
  readonly entry: string
  readonly origin: string
}

/** The longest entry that can be sent at all, in a request of its own: `{"logs":[…]}`. */
export const entryBytesMax = limits.bodyBytesMax - 64

interface SenderOptions {
  readonly api: HttpAccess
  readonly retryForMs: number
  /** Ends pauses, and with them the retries. Requests in flight are awaited. */
  readonly interrupted: AbortSignal
  readonly nowMs: () => number
}

/** Stops at the first request that fails permanently: `failed` is aborted, `end` throws, and entries added later count as unanswered. */
export class EntrySender {
  readonly #options: SenderOptions
  readonly #report: SendReport
  readonly #client: SluiceClient
  readonly #stop = new AbortController()
  readonly failed = this.#stop.signal
  #resumeAtMs = 0
  #proceed: () => void = () => undefined

  constructor(options: SenderOptions, report: SendReport) {
    const { api, retryForMs, interrupted } = options
    this.#options = options
    this.#report = report
    this.#client = new SluiceClient({
      url: api.url,
      apiKey: api.key,
      batchBytesMax: 1024 * 1024,
      // The four requests in flight, the next one, and as much room again.
      queueEntriesMax: 6 * limits.entriesPerRequestMax,
      retryForMs,
      flushOnExit: false,
      onSettled: (settlement) => this.#onSettled(settlement),
      onDropped: (entries) => report.onUnanswered(outgoing(entries)),
      onRetry: (retry) => this.#onRetry(retry),
      onError: ({ kind, status, reason }) => {
        const isKeyWrong = status === 401 && reason.startsWith('the API key')
        const hint = isKeyWrong ? '; set SLUICE_API_KEY or pass --api-key' : ''
        if (kind === 'configuration') this.#fail(`rejected the request: ${reason}${hint}`)
      },
      // They are in the settlement of their request.
      onRejected: () => undefined,
    })
    interrupted.addEventListener('abort', () => this.#proceed())
  }

  /** Resolves when the entry is in the queue: after an interruption at once, because few follow then. Must not be called again before. */
  async add(entry: OutgoingEntry): Promise<void> {
    const bytes = Buffer.byteLength(entry.entry)
    if (bytes > entryBytesMax) return this.#report.onTooLong(entry.origin, entryBytesMax)
    if (!this.#options.interrupted.aborted) {
      await new Promise<void>((resolve) => {
        this.#proceed = resolve
        void this.#client.waitForRoom(bytes).then(resolve)
      })
    }
    this.#client.sendJson(entry.entry, entry)
  }

  /** Sends the remaining entries and awaits all responses. @throws the failure of the first request that could not be sent */
  async end(): Promise<void> {
    const { interrupted } = this.#options
    interrupted.addEventListener('abort', () => void this.#close('try-once'))
    if (this.failed.aborted) await this.#close('give-up')
    else await this.#close(interrupted.aborted ? 'try-once' : 'retry')
    this.failed.throwIfAborted()
  }

  #onSettled({ outcome, entries, accepted, rejections, reason, cause }: Settlement): void {
    if (outcome === 'answered') {
      this.#report.onAnswered(entries.length, accepted)
      const sent = outgoing(entries)
      // The API lists several errors of one entry.
      for (const [index, [{ error } = {}]] of Map.groupBy(rejections, (each) => each.index))
        this.#report.onRejection(sent[index]?.origin ?? '', `${error?.path} ${error?.message}`.trimStart())
    } else if (outcome === 'rejected') {
      this.#report.onUnanswered(outgoing(entries))
      this.#fail(`rejected the request: ${reason}`)
    } else if (outcome === 'retries' || outcome === 'outcome-unknown') {
      this.#fail(`${describeNetworkError(cause) ?? `failed: ${reason}`}; gave up retrying`)
    }
  }

  #onRetry({ reason, cause, delayMs, hasReceivedResponse }: Retry): void {
    const described = describeNetworkError(cause)
    // The address is probably wrong, and retries would not help.
    if (!hasReceivedResponse && wasNeverSent(cause))
      return this.#fail(`${described}; \`npm start\` starts a local API`)
    const nowMs = this.#options.nowMs()
    // The other requests in flight usually fail for the same reason; it is reported once.
    if (nowMs >= this.#resumeAtMs) {
      const why = described === undefined ? reason : `the API ${described}`
      this.#report.note(`Waiting ${(delayMs / 1_000).toFixed(1)} s: ${why}.`)
    }
    this.#resumeAtMs = Math.max(this.#resumeAtMs, nowMs + delayMs)
  }

  #fail(reason: string): void {
    if (this.failed.aborted) return
    void this.#close('give-up')
    this.#stop.abort(new CliError(`the API at ${redactUrl(this.#options.api.url)} ${reason}`))
  }

  /** Each attempt has a timeout, and the retries have their end. The close needs none. */
  async #close(remaining: 'retry' | 'try-once' | 'give-up'): Promise<void> {
    await this.#client.close({ remaining, timeoutMs: Infinity })
  }
}

function outgoing(entries: readonly QueuedEntry[]): OutgoingEntry[] {
  return entries.map(({ tag }) => tag as OutgoingEntry)
}
