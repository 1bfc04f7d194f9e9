import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { zstdCompressSync } from 'node:zlib'
import { type Backoff, backoffMs } from '@sluice/runtime'
import { CliError, describeNetworkError, wasNeverSent } from '../errors.ts'
import type { ApiAccess } from '../service-access.ts'
import { redactUrl } from '../terminal.ts'
import { interpretResponse, type Outcome, type Rejection } from './responses.ts'

export const postLimits = {
  /** The API responds within 2 s even if Redis is unavailable; a slow connection may need a while for a big request. */
  requestTimeoutMs: 30_000,
  /** A smaller body fits into one packet without compression. */
  compressedBytesMin: 1_400,
  /** Far above the largest response: every entry rejected, with all its errors and the longest paths. */
  responseBytesMax: 1024 * 1024,
} as const

const retryBackoff: Backoff = { baseMs: 250, maxMs: 10_000 }

/** Thrown when a request cannot be sent. The requests after it would fail as well. */
class SendError extends CliError {
  override name = 'SendError'
}

export interface PosterOptions {
  readonly api: ApiAccess
  /** How long a request is retried, at least. */
  readonly retryForMs: number
  /** How long one attempt may take; `postLimits.requestTimeoutMs` except in tests. */
  readonly requestTimeoutMs: number
  /** Aborts pauses, and with them the retries. A request in flight is awaited. */
  readonly signal: AbortSignal
  readonly nowMs: () => number
  readonly random: () => number
  /** Called when all sending pauses. */
  readonly onPause: (reason: string, pauseMs: number) => void
}

/** Posts several requests at a time, and retries each. When one request has to pause, all of them pause. */
export class RequestPoster {
  readonly #options: PosterOptions
  #resumeAtMs = 0
  #hasReceivedResponse = false

  constructor(options: PosterOptions) {
    this.#options = options
  }

  /**
   * Posts at least one entry, each as JSON text, as one request.
   *
   * The API may have stored the entries of an attempt although its response was lost. All attempts therefore carry the
   * same idempotency key.
   *
   * @throws SendError
   */
  async post(entries: readonly string[]): Promise<{ accepted: number; rejections: readonly Rejection[] }> {
    const { nowMs, retryForMs } = this.#options
    const body = encodeBody(`{"logs":[${entries.join(',')}]}`)
    const idempotencyKey = randomUUID()
    const giveUpAtMs = nowMs() + retryForMs
    for (let attempt = 1; ; attempt += 1) {
      await this.#awaitResumption()
      const outcome = await this.#attempt(body, entries.length, idempotencyKey)
      if (outcome.kind === 'processed') return outcome
      if (outcome.kind === 'stop')
        throw new SendError(`${this.#apiName} rejected the request: ${outcome.reason}`)
      this.#pause(outcome, attempt, giveUpAtMs)
    }
  }

  get #apiName(): string {
    return `the API at ${redactUrl(this.#options.api.url)}`
  }

  #pause({ reason, retryAfterMs }: Outcome & { kind: 'retry' }, attempt: number, giveUpAtMs: number): void {
    const { nowMs, random, onPause } = this.#options
    const pauseMs = Math.max(retryAfterMs ?? 0, backoffMs(attempt, retryBackoff, random()))
    const resumeAtMs = nowMs() + pauseMs
    if (resumeAtMs > giveUpAtMs) throw new SendError(`${this.#apiName}: ${reason}; gave up retrying`)
    // The other requests in flight usually fail for the same reason; it is reported once.
    if (nowMs() >= this.#resumeAtMs) onPause(reason, pauseMs)
    this.#resumeAtMs = Math.max(this.#resumeAtMs, resumeAtMs)
  }

  async #awaitResumption(): Promise<void> {
    const { nowMs, signal } = this.#options
    while (nowMs() < this.#resumeAtMs) {
      if (signal.aborted) throw new SendError('interrupted while waiting to retry')
      // An abort ends the pause early. The loop handles it.
      await sleep(this.#resumeAtMs - nowMs(), undefined, { signal }).catch(() => undefined)
    }
  }

  async #attempt({ bytes, encoding }: Body, entries: number, idempotencyKey: string): Promise<Outcome> {
    const { api, nowMs, requestTimeoutMs } = this.#options
    try {
      const response = await fetch(api.url, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${api.key}`,
          'content-type': 'application/json',
          'content-encoding': encoding,
          'idempotency-key': idempotencyKey,
        },
        body: bytes,
        redirect: 'manual',
        signal: AbortSignal.timeout(requestTimeoutMs),
      })
      const text = await readText(response)
      this.#hasReceivedResponse = true
      return interpretResponse(response.status, response.headers.get('retry-after'), text, entries, nowMs())
    } catch (error) {
      const reason = describeNetworkError(error)
      if (reason === undefined) throw error
      // The API has never responded: the address is probably wrong, and retries would not help.
      if (!this.#hasReceivedResponse && wasNeverSent(error)) {
        throw new SendError(`${this.#apiName} ${reason}; \`npm start\` starts a local API`, {
          cause: error,
        })
      }
      return { kind: 'retry', reason: `the API ${reason}`, retryAfterMs: undefined }
    }
  }
}

interface Body {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly encoding: 'identity' | 'zstd'
}

function encodeBody(text: string): Body {
  const bytes = Buffer.from(text)
  if (bytes.length < postLimits.compressedBytesMin) return { bytes, encoding: 'identity' }
  return { bytes: zstdCompressSync(bytes), encoding: 'zstd' }
}

/** Reads the body of a response, and stops at the limit. */
async function readText(response: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of response.body ?? []) {
    bytes += piece.length
    if (bytes > postLimits.responseBytesMax) break
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}
