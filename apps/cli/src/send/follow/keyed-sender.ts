import { type Settlement, SluiceClient, type SluiceError } from '@sluice/client'
import { limits } from '@sluice/schema'
import { CliError } from '../../errors.ts'
import type { ApiAccess } from '../../service-access.ts'
import { sendLimits } from '../entry-sender.ts'
import { describeFailure, describeMisconfiguration, nameOfApi } from '../failures.ts'

export interface KeyedSenderOptions {
  readonly api: ApiAccess
  /** Ends the retries. Requests in flight are awaited. */
  readonly signal: AbortSignal
  readonly random: () => number
  readonly note: (text: string) => void
  /** The default of the client, except in tests. */
  readonly idempotencyWindowMs?: number
}

export type Answer = Pick<Settlement, 'accepted' | 'rejections'>

/** Sends requests with given idempotency keys, and retries each until the API answers, however long that takes. */
export class KeyedSender {
  readonly #options: KeyedSenderOptions
  readonly #client: SluiceClient
  #isAvailable = true
  #failure: CliError | undefined

  constructor(options: KeyedSenderOptions) {
    const { api, signal, random, idempotencyWindowMs } = options
    const requestsMax = sendLimits.requestsInFlightMax + 1
    this.#options = options
    this.#client = new SluiceClient(
      {
        url: api.url,
        apiKey: api.key,
        requestsInFlightMax: sendLimits.requestsInFlightMax,
        queueEntriesMax: requestsMax * limits.entriesPerRequestMax,
        queueBytesMax: requestsMax * limits.bodyBytesMax,
        idempotencyWindowMs,
        flushOnExit: false,
        onRetry: ({ reason, cause }) => this.#onRetry(describeFailure(reason, cause)),
        onError: (error) => this.#onError(error),
      },
      { random },
    )
    if (signal.aborted) this.#giveUp()
    else signal.addEventListener('abort', () => this.#giveUp(), { once: true })
  }

  /**
   * @param entries as JSON texts
   * @returns undefined if the signal was aborted before the API answered
   * @throws CliError when the API rejects the request: no retry would help
   */
  async send(entries: readonly string[], idempotencyKey: string): Promise<Answer | undefined> {
    for (;;) {
      const settlement = await this.#client.sendRequest(entries, idempotencyKey)
      const { outcome, reason = '' } = settlement
      if (outcome === 'answered') {
        this.#onAnswer()
        return settlement
      }
      if (outcome === 'rejected') {
        throw new CliError(`${nameOfApi(this.#options.api)} rejected the request: ${reason}`)
      }
      if (outcome === 'closed') {
        if (this.#failure !== undefined) throw this.#failure
        return undefined
      }
      // An attempt may have succeeded, and the API may have forgotten its key since: rather twice than never.
    }
  }

  #onAnswer(): void {
    if (!this.#isAvailable) this.#options.note('The API is available again.')
    this.#isAvailable = true
  }

  /** One line for an outage, however long it is. */
  #onRetry(reason: string): void {
    if (this.#isAvailable) this.#options.note(`Waiting until the API is available: ${reason}.`)
    this.#isAvailable = false
  }

  #onError(error: SluiceError): void {
    if (error.kind !== 'configuration') return
    this.#failure = new CliError(describeMisconfiguration(this.#options.api, error))
    this.#giveUp()
  }

  #giveUp(): void {
    void this.#client.close({ remaining: 'give-up', timeoutMs: Infinity })
  }
}
