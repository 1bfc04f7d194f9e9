import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { zstdCompressSync } from 'node:zlib'
import { type Backoff, backoffMs } from '@sluice/runtime'
import { type ApiAccess, shownUrl } from '../connections.ts'
import { CliError, describeNetworkError, isNeverConnected } from '../errors.ts'
import { judgeAnswer, type Outcome, type Rejection } from './answers.ts'

export const postLimits = {
  /** The API answers within 2 s even when Redis is away; a slow line may take a while for a big batch. */
  requestTimeoutMs: 30_000,
  /** A smaller body fits into one packet as it is. */
  compressedBytesMin: 1_400,
  /** Every entry of a batch rejected, with all its errors and longest paths, stays far below. */
  answerBytesMax: 1024 * 1024,
} as const

const retryBackoff: Backoff = { baseMs: 250, maxMs: 10_000 }

/** Thrown when a batch cannot be sent, and no other could. */
export class SendError extends CliError {
  override name = 'SendError'
}

export interface PosterOptions {
  readonly api: ApiAccess
  /** How long a batch is tried, at least. */
  readonly retryForMs: number
  /** How long one attempt may take; `postLimits.requestTimeoutMs` outside of tests. */
  readonly requestTimeoutMs: number
  /** Ends pauses, and with them the trying. A request under way is awaited. */
  readonly signal: AbortSignal
  readonly nowMs: () => number
  readonly random: () => number
  /** Told when all sending pauses, and why. */
  readonly onPause: (reason: string, pauseMs: number) => void
}

/** Posts batches, several at a time, each until it is answered. A pause that one has to make, all make. */
export class BatchPoster {
  readonly #options: PosterOptions
  #resumeAtMs = 0
  #wasEverAnswered = false

  constructor(options: PosterOptions) {
    this.#options = options
  }

  /**
   * Sends the entries, at least one, each as JSON text.
   *
   * An attempt whose answer was lost may have been taken, so each attempt carries the same idempotency key.
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
      if (outcome.kind === 'taken') return outcome
      if (outcome.kind === 'stop') throw new SendError(`${this.#name} does not take this: ${outcome.reason}`)
      this.#pause(outcome, attempt, giveUpAtMs)
    }
  }

  get #name(): string {
    return `the API at ${shownUrl(this.#options.api.url)}`
  }

  #pause({ reason, retryAfterMs }: Outcome & { kind: 'retry' }, attempt: number, giveUpAtMs: number): void {
    const { nowMs, random, onPause } = this.#options
    const pauseMs = Math.max(retryAfterMs ?? 0, backoffMs(attempt, retryBackoff, random()))
    const resumeAtMs = nowMs() + pauseMs
    if (resumeAtMs > giveUpAtMs) throw new SendError(`${this.#name}: ${reason}; gave up trying`)
    // The batches that were under way together all come back with the same news.
    if (nowMs() >= this.#resumeAtMs) onPause(reason, pauseMs)
    this.#resumeAtMs = Math.max(this.#resumeAtMs, resumeAtMs)
  }

  async #awaitResumption(): Promise<void> {
    const { nowMs, signal } = this.#options
    while (nowMs() < this.#resumeAtMs) {
      if (signal.aborted) throw new SendError('interrupted while the API wanted a pause')
      // The signal ends the pause early; the loop sees it.
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
      const answer = await readText(response)
      this.#wasEverAnswered = true
      return judgeAnswer(response.status, response.headers.get('retry-after'), answer, entries, nowMs())
    } catch (error) {
      const reason = describeNetworkError(error)
      if (reason === undefined) throw error
      // Nobody was ever there: rather a wrong address than a restart.
      if (!this.#wasEverAnswered && isNeverConnected(error)) {
        throw new SendError(`${this.#name} ${reason}; \`npm start\` starts a local one`)
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

async function readText(response: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of response.body ?? []) {
    bytes += piece.length
    if (bytes > postLimits.answerBytesMax) break
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}
