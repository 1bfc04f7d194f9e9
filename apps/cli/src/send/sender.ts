import { type QueuedEntry, type Retry, type Settlement, SluiceClient } from '@sluice/client'
import { limits } from '@sluice/schema'
import type { Context, Output } from '../context.ts'
import { CliError, describeNetworkError, wasNeverSent } from '../errors.ts'
import type { HttpAccess } from '../service-access.ts'
import { escapeControls, formatCount, redactUrl } from '../terminal.ts'
import type { LineRange } from './line-ranges.ts'

/** An entry to be sent, and its origin: its lines in the whole input. */
export interface OutgoingEntry extends LineRange {
  readonly entry: string
  readonly origin: string
}

/** The longest entry that can be sent at all, in a request of its own: `{"logs":[…]}`. */
export const entryBytesMax = limits.bodyBytesMax - 64

/** The first rejections show what is wrong. Thousands more would add nothing. */
const REJECTIONS_SHOWN_MAX = 10
const CLEAR_LINE = '\r\u001B[2K'

interface SenderOptions {
  readonly api: HttpAccess
  readonly retryForMs: number
  /** Ends pauses, and with them the retries. Requests in flight are awaited. */
  readonly interrupted: AbortSignal
  readonly context: Pick<Context, 'nowMs' | 'stderr'>
}

/**
 * Sends entries, and counts what becomes of them. Prints the first rejections and, on a terminal, a line with the counts below them.
 *
 * Stops at the first request that fails permanently: `failed` is aborted, `end` throws, and entries added later count as unanswered.
 */
export class EntrySender {
  readonly #options: SenderOptions
  readonly #stderr: Output
  readonly #client: SluiceClient
  readonly #stop = new AbortController()
  readonly failed = this.#stop.signal
  #resumeAtMs = 0
  #proceed: () => void = () => undefined
  #rejections = 0
  #answered = 0
  #accepted = 0
  #tooLong = 0
  /** Lines of the whole input that were read, the skipped ones included. */
  lines = 0
  repaired = 0
  /** Entries that were not sent, or whose outcome is unknown. */
  unanswered = 0
  /** Their lines, by request. Nothing is sent after a failure, so there are few. */
  readonly unansweredLines: LineRange[] = []

  constructor(options: SenderOptions) {
    const { api, retryForMs, interrupted, context } = options
    this.#options = options
    this.#stderr = context.stderr
    this.#client = new SluiceClient({
      url: api.url,
      apiKey: api.key,
      batchBytesMax: 1024 * 1024,
      // The four requests in flight, the next one, and as much room again.
      queueEntriesMax: 6 * limits.entriesPerRequestMax,
      retryForMs,
      flushOnExit: false,
      onSettled: (settlement) => this.#onSettled(settlement),
      onDropped: (entries) => this.#onUnanswered(outgoing(entries)),
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
    if (bytes > entryBytesMax) return this.onTooLong(entry.origin)
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

  /** Prints a line that stays. It may be untrusted: it is made safe to print. */
  note(line: string): void {
    this.#write(`${escapeControls(line)}\n`)
  }

  onTooLong(origin: string): void {
    this.#tooLong += 1
    this.#onRejection(origin, `longer than ${formatCount(entryBytesMax)} bytes, not sent`)
  }

  get rejected(): number {
    return this.#answered - this.#accepted + this.#tooLong
  }

  get #counts(): string {
    return `${formatCount(this.#accepted)} accepted, ${formatCount(this.rejected)} rejected`
  }

  /** Removes the counts on a terminal. @returns the final ones */
  summary(elapsedMs: number): string {
    if (this.#stderr.isTerminal) void this.#stderr.write(CLEAR_LINE)
    const [answered, unanswered] = [this.#answered, this.unanswered]
    const parts = [
      `${formatCount(answered)} of ${formatCount(answered + this.#tooLong + unanswered)} entries sent, ${this.#counts}`,
      ...(unanswered === 0 ? [] : [`${formatCount(unanswered)} not sent or without a response`]),
      ...(this.repaired === 0 ? [] : [`${formatCount(this.repaired)} repaired because of invalid UTF-8`]),
    ]
    const rate = formatCount(Math.round((answered * 1_000) / Math.max(1, elapsedMs)))
    return `${parts.join(', ')}; ${(elapsedMs / 1_000).toFixed(1)} s, ${rate} entries/s.`
  }

  #write(note: string): void {
    void this.#stderr.write(this.#stderr.isTerminal ? `${CLEAR_LINE}${note}${this.#counts}` : note)
  }

  #onRejection(origin: string, reason: string): void {
    if (++this.#rejections > REJECTIONS_SHOWN_MAX) return
    this.note(`${origin}: ${reason}`)
    if (this.#rejections === REJECTIONS_SHOWN_MAX) this.note('Further rejections are not shown.')
  }

  #onUnanswered(entries: readonly OutgoingEntry[]): void {
    const [first, last] = [entries[0], entries.at(-1)]
    if (first === undefined || last === undefined) return
    this.unanswered += entries.length
    this.unansweredLines.push({ first: first.first, last: last.last })
  }

  #onSettled({ outcome, entries, accepted, rejections, reason, cause }: Settlement): void {
    if (outcome === 'answered') {
      this.#answered += entries.length
      this.#accepted += accepted
      if (this.#stderr.isTerminal) this.#write('')
      const sent = outgoing(entries)
      // The API lists several errors of one entry.
      for (const [index, [{ error } = {}]] of Map.groupBy(rejections, (each) => each.index))
        this.#onRejection(sent[index]?.origin ?? '', `${error?.path} ${error?.message}`.trimStart())
    } else if (outcome === 'rejected') {
      this.#onUnanswered(outgoing(entries))
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
    const nowMs = this.#options.context.nowMs()
    // The other requests in flight usually fail for the same reason; it is reported once.
    if (nowMs >= this.#resumeAtMs) {
      const why = described === undefined ? reason : `the API ${described}`
      this.note(`Waiting ${(delayMs / 1_000).toFixed(1)} s: ${why}.`)
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
