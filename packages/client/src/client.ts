/// <reference lib="esnext.disposable" preserve="true" />
import { Delivery, type Persistence } from './delivery/delivery.ts'
import { type FlushOptions, type FlushResult, SettledCounts } from './delivery/flush.ts'
import { type EntryCounts, Settlements } from './delivery/settlements.ts'
import { copyFields } from './encoding/metadata.ts'
import type { Metadata } from './entry.ts'
import { flushBeforeExit } from './exit.ts'
import { HookCaller } from './hook-caller.ts'
import type { Settlement } from './hooks.ts'
import { Intake } from './intake.ts'
import { Logger } from './logger.ts'
import { type ClientOptions, readOptions } from './options.ts'
import { type Platform, systemPlatform } from './platform.ts'
import { keepAliveUntil } from './timers.ts'

export interface CloseOptions extends FlushOptions {
  /** What is done with entries that are not acknowledged. Default: `retry`, until the timeout. */
  readonly remaining?: Persistence | undefined
}

export interface ClientStats extends Readonly<EntryCounts> {
  readonly failedAttempts: number
  readonly queuedEntries: number
  readonly queuedBytes: number
  readonly requestsInFlight: number
}

/** Long enough for some retries, and shorter than the time that platforms wait before they kill a process. */
const CLOSE_TIMEOUT_MS = 10_000

/**
 * Sends log entries to Sluice, in batches. Its methods for logging never throw and never wait.
 *
 * open → closing (drops new entries, sends those in the queue) → closed.
 */
export class SluiceClient extends Logger {
  readonly #delivery: Delivery
  readonly #settlements: Settlements
  readonly #intake: Intake
  readonly #forgetExit: () => void
  readonly #monotonicMs: () => number
  #closing: Promise<FlushResult> | undefined

  /**
   * @param given clocks, randomness and globals that replace those of the system, for tests
   * @throws TypeError if an option is invalid, or if there is an API key in a browser
   */
  constructor(options: ClientOptions, given: Partial<Platform> = {}) {
    const platform = { ...systemPlatform(), ...given }
    const settings = readOptions(options, platform)
    const hooks = new HookCaller(options)
    const settlements = new Settlements(hooks)
    const delivery = new Delivery(settings, platform, hooks, settlements)
    const intake = new Intake(delivery, settlements, platform.wallMs)
    super(intake, settings.entryDefaults, copyFields(options.metadata ?? {}) as Metadata)
    this.#delivery = delivery
    this.#settlements = settlements
    this.#intake = intake
    this.#monotonicMs = platform.monotonicMs
    this.#forgetExit = settings.flushOnExit
      ? flushBeforeExit((limits) => this.flush(limits))
      : () => undefined
  }

  /**
   * Sends an entry that is already JSON text, as it is: without context, defaults and checks. The API rejects the whole request if the
   * text is not valid JSON.
   *
   * @param tag any value: hooks get it with the entry
   */
  sendJson(json: string, tag?: unknown): void {
    this.#intake.addJson(json, tag)
  }

  /**
   * Sends exactly these entries, in this order, in one request with this idempotency key. For programs that choose keys which follow from the
   * origin of the entries, so that the same request can be made again after a crash. The request is retried as the options say, is not split,
   * and is not kept in the spool.
   *
   * @param texts 1 to 100 entries as JSON texts, which are sent as they are
   * @param idempotencyKey 1 to 255 visible ASCII characters. Another body with the same key is rejected
   * @returns what became of the request. Rejects with a TypeError if the arguments are invalid, and for no other reason
   */
  async sendRequest(texts: readonly string[], idempotencyKey: string): Promise<Settlement> {
    return keepAliveUntil(this.#intake.addRequest(texts, idempotencyKey))
  }

  /**
   * Resolves when the queue has room for a batch, or for an entry of this many bytes if it is larger, or when the client is closed. For
   * senders that can wait, such as one that reads a file.
   */
  waitForRoom(bytes = 0): Promise<void> {
    return keepAliveUntil(this.#delivery.waitForRoom(bytes))
  }

  get stats(): ClientStats {
    const { memory, requestsInFlight, failedAttempts } = this.#delivery
    return {
      ...this.#settlements.counts,
      failedAttempts,
      queuedEntries: memory.entries,
      queuedBytes: memory.bytes,
      requestsInFlight,
    }
  }

  /**
   * Sends what is in the queue, without waiting for further entries.
   *
   * @returns when every entry that was in the queue at the call is acknowledged or given up, after `timeoutMs`, or when the API rejects
   *   all requests
   */
  async flush({ timeoutMs = Infinity }: FlushOptions = {}): Promise<FlushResult> {
    this.#delivery.hurry()
    const counts = new SettledCounts(this.#delivery)
    await keepAliveUntil(counts.endOrTimeout(timeoutMs, { endsOnProblem: true }))
    return counts.result()
  }

  /**
   * Sends what is in the queue, and gives up what is not acknowledged after `timeoutMs` (10 s by default), or when the API rejects all
   * requests. Entries that are logged later are dropped. A further call can only change what `remaining` says.
   */
  close(options: CloseOptions = {}): Promise<FlushResult> {
    if (this.#closing === undefined) this.#closing = this.#close(options)
    else if (options.remaining !== undefined) this.#delivery.setPersistence(options.remaining)
    return this.#closing
  }

  async #close({ timeoutMs = CLOSE_TIMEOUT_MS, remaining = 'retry' }: CloseOptions): Promise<FlushResult> {
    this.#forgetExit()
    this.#intake.close()
    const counts = new SettledCounts(this.#delivery)
    this.#delivery.hurry()
    this.#delivery.setPersistence(remaining)
    await keepAliveUntil(this.#endWithin(counts, timeoutMs))
    await keepAliveUntil(this.#delivery.closeSpool())
    return counts.result()
  }

  async #endWithin(counts: SettledCounts, timeoutMs: number): Promise<void> {
    const endMs = this.#monotonicMs() + timeoutMs
    await counts.endOrTimeout(timeoutMs, { endsOnProblem: true })
    // After a problem, others of the requests in flight may still be accepted.
    this.#delivery.setPersistence('give-up')
    const restMs = endMs - this.#monotonicMs()
    if (restMs > 0) await counts.endOrTimeout(restMs, { endsOnProblem: false })
    this.#delivery.abort()
    await counts.end()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
