/// <reference lib="esnext.disposable" preserve="true" />
import { limits } from '@sluice/schema/limits'
import type { EntryCounts } from './batch.ts'
import { Delivery, type Persistence, persistences, type Watch } from './delivery.ts'
import { utf8Bytes } from './encode.ts'
import { HookCaller, type SluiceError } from './hooks.ts'
import { Logger } from './logger.ts'
import { copyFields } from './metadata.ts'
import { type ClientOptions, readOptions } from './options.ts'
import { flushBeforeExit, keepAliveUntil, type Platform, systemPlatform } from './platform.ts'

export interface FlushOptions {
  /** Default of `flush`: without an end. Default of `close`: 10 s. */
  readonly timeoutMs?: number | undefined
}

export interface CloseOptions extends FlushOptions {
  /** What is done with entries that are not acknowledged. Default: `retry`, until the timeout. */
  readonly remaining?: Persistence | undefined
}

/** The entries that were in the queue, by outcome. Entries that were logged later and travel in the same request are counted too. */
export interface FlushResult extends Readonly<Omit<EntryCounts, 'kept'>> {
  /** Still in the queue. After `close`, in the spool for the next process. */
  readonly pending: number
  /** Why the API rejects all requests. */
  readonly problem: SluiceError | undefined
}

export interface ClientStats extends Readonly<EntryCounts> {
  readonly failedAttempts: number
  /** In memory, those in flight included. */
  readonly queuedEntries: number
  readonly queuedBytes: number
  /** Waiting in the spool, and not in memory. */
  readonly spooledEntries: number
  readonly requestsInFlight: number
}

/** Long enough for some retries, and shorter than the time that platforms wait before they kill a process. */
const CLOSE_TIMEOUT_MS = 10_000
/** The largest entry: the rest is reserved for the request around it. */
const JSON_BYTES_MAX = limits.bodyBytesMax - 64

/**
 * Sends log entries to Sluice, in batches. Its methods for logging never throw and never wait.
 *
 * open → closing (drops new entries, sends those in the queue) → closed.
 */
export class SluiceClient extends Logger {
  readonly #delivery: Delivery
  readonly #forgetExit: () => void
  readonly #monotonicMs: () => number
  #closing: Promise<FlushResult> | undefined

  /**
   * @param given clocks, randomness and globals for tests. Default: the system's
   * @throws TypeError if an option is invalid, or if there is an API key in a browser
   */
  constructor(options: ClientOptions, given: Partial<Platform> = {}) {
    const platform = { ...systemPlatform(), ...given }
    const settings = readOptions(options, platform)
    const delivery = new Delivery(settings, platform, new HookCaller(options))
    super(delivery, settings.entryDefaults, copyFields(options.metadata ?? {}))
    this.#delivery = delivery
    this.#monotonicMs = platform.monotonicMs
    this.#forgetExit = settings.flushOnExit
      ? flushBeforeExit((timeout) => this.flush(timeout))
      : () => undefined
  }

  /** Sends an entry that is already JSON, as it is. The API rejects the whole request if it is not valid JSON. */
  sendJson(json: string, tag?: unknown): void {
    const reject = (code: string, message: string): void =>
      this.#delivery.reject(json, { path: '', code, message }, tag)
    if (typeof json !== 'string') return reject('wrong_type', 'must be a JSON string')
    // The number of characters, which costs nothing, is never above the number of bytes.
    if (json.length > JSON_BYTES_MAX || utf8Bytes(json) > JSON_BYTES_MAX)
      return reject('too_large', `must have at most ${JSON_BYTES_MAX} bytes`)
    if (json.trim() === '') return reject('invalid_json', 'must not be empty')
    // A spool separates entries by them. In JSON, they are only white space: strings have escapes.
    this.#delivery.add(json.replaceAll(/[\t\r\n]+/g, ' '), tag)
  }

  /**
   * Resolves when the queue has room for a batch, or for an entry of this many bytes if it is larger, or when the client is closed. For
   * senders that can wait, such as a reader of files.
   */
  waitForRoom(bytes = 0): Promise<void> {
    return keepAliveUntil(this.#delivery.waitForRoom(bytes))
  }

  get stats(): ClientStats {
    const { counts, queue, failedAttempts, requestsInFlight } = this.#delivery
    const spooled = queue.batches.filter(({ isLoaded }) => !isLoaded)
    return {
      ...counts,
      failedAttempts,
      queuedEntries: queue.entries,
      queuedBytes: queue.bytes,
      spooledEntries: spooled.reduce((sum, { count }) => sum + count, 0),
      requestsInFlight,
    }
  }

  /** Resolves when every entry that is in the queue now is acknowledged or given up, after `timeoutMs`, or when the API rejects all requests. */
  async flush({ timeoutMs = Infinity }: FlushOptions = {}): Promise<FlushResult> {
    checkTimeout(timeoutMs)
    this.#delivery.hurry()
    const watch = this.#delivery.watch()
    await keepAliveUntil(this.#settled(watch, timeoutMs, 0))
    return this.#resultOf(watch)
  }

  /**
   * Sends what is in the queue, and gives up what is not acknowledged after `timeoutMs` (10 s by default), or when the API rejects all
   * requests. Entries that are logged later are dropped. A further call can only change what `remaining` says.
   */
  async close({ timeoutMs = CLOSE_TIMEOUT_MS, remaining }: CloseOptions = {}): Promise<FlushResult> {
    checkTimeout(timeoutMs)
    if (remaining !== undefined && !persistences.includes(remaining))
      throw new TypeError(`\`remaining\` must be one of ${persistences.join(', ')}`)
    this.#closing ??= keepAliveUntil(this.#close(timeoutMs))
    if (remaining !== undefined) this.#delivery.setPersistence(remaining)
    return this.#closing
  }

  async #close(timeoutMs: number): Promise<FlushResult> {
    const delivery = this.#delivery
    this.#forgetExit()
    delivery.isClosing = true
    const endMs = this.#monotonicMs() + timeoutMs
    const watch = delivery.watch()
    delivery.retry.tryAgain(watch.batches)
    delivery.hurry()
    await this.#settled(watch, timeoutMs, delivery.retry.problemResponses + 1)
    // After a problem, others of the requests in flight may still be accepted.
    delivery.setPersistence('give-up')
    const restMs = endMs - this.#monotonicMs()
    if (restMs > 0) await this.#settled(watch, restMs)
    delivery.abort()
    await this.#settled(watch)
    await delivery.spool?.close()
    return this.#resultOf(watch)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** @param problemResponsesMin resolves too if the API rejects all requests, and has said so this often */
  #settled({ batches }: Watch, timeoutMs = Infinity, problemResponsesMin = Infinity): Promise<void> {
    const { retry } = this.#delivery
    const isRejected = (): boolean =>
      retry.problem !== undefined && retry.problemResponses >= problemResponsesMin
    return this.#delivery.until(() => batches.size === 0 || isRejected(), timeoutMs)
  }

  #resultOf(watch: Watch): FlushResult {
    this.#delivery.watches.delete(watch)
    const { kept, ...counts } = watch.counts
    const pending = [...watch.batches].reduce((sum, { count }) => sum + count, kept)
    return { ...counts, pending, problem: this.#delivery.retry.problem }
  }
}

function checkTimeout(timeoutMs: number): void {
  if (typeof timeoutMs !== 'number' || !(timeoutMs >= 0))
    throw new TypeError('`timeoutMs` must be a number of at least 0')
}
