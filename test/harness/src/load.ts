import { randomUUID } from 'node:crypto'
import type { Journal } from './journal.ts'
import { type LogsResponse, postLogs } from './logs-request.ts'
import { integer, pick, type Random } from './random.ts'
import { pause } from './waiting.ts'

export interface LoadOptions {
  readonly journal: Journal
  readonly apiUrls: readonly string[]
  readonly apiKey: string
  readonly random: Random
  readonly entriesPerSecond: number
}

const loadLimits = {
  clients: 4,
  /** All entries that are due in one tick are sent together, in one or several requests. */
  tickMs: 100,
  entriesPerRequestMax: 40,
  /** A client with this many requests in flight sends no more. They would only pile up in front of a frozen API. */
  requestsInFlightMax: 100,
  singleShare: 0.5,
  keyedShare: 0.3,
  retryIntervalMs: 200,
  /** Longer than the restart of any process. After that the client gives up. */
  retryForMs: 20_000,
  repeatedShare: 0.2,
  /** The share of entries that the API must reject, and that must not be stored. */
  invalidShare: 0.02,
  scatteredShare: 0.3,
  scatteredYears: { min: 1990, max: 2060 },
  /** The share of entries whose service is not a valid regular expression. ClickHouse rejects them if its table says so. */
  bracketShare: 0.001,
} as const

const REQUEST_TIMEOUT = 408
const RATE_LIMITED = 429

/** Whether an earlier or a later attempt may be stored: there was no response (0), or one that a client retries. */
const isTransient = (status: number): boolean => status === 0 || status === REQUEST_TIMEOUT || status >= 500

/**
 * Several clients that send at a constant rate whatever the responses are, and record the outcome of each entry. Only requests with an idempotency
 * key are ever sent twice. An entry that is stored twice was therefore duplicated by Sluice.
 */
export class Load {
  readonly #options: LoadOptions
  readonly #stopping = new AbortController()
  #running: Promise<unknown> | undefined

  constructor(options: LoadOptions) {
    this.#options = options
  }

  start(): void {
    this.#running ??= Promise.all(Array.from({ length: loadLimits.clients }, () => this.#runClient()))
  }

  /** Stops sending, and resolves when every request has a response or was given up. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #runClient(): Promise<void> {
    const { signal } = this.#stopping
    const { clients, tickMs } = loadLimits
    const entriesPerTick = (this.#options.entriesPerSecond / clients / 1000) * tickMs
    const inFlight = new Set<Promise<void>>()
    let credit = 0
    let dueAtMs = performance.now()
    while (!signal.aborted) {
      for (credit += entriesPerTick; credit >= 1;) credit -= this.#sendNext(inFlight)
      dueAtMs += tickMs
      await pause(dueAtMs - performance.now(), signal)
    }
    await Promise.all(inFlight)
  }

  /** @returns how many entries were sent, or skipped because too many requests are in flight */
  #sendNext(inFlight: Set<Promise<void>>): number {
    const { journal, random } = this.#options
    const isSingle = random() < loadLimits.singleShare
    const count = isSingle ? 1 : integer(random, 2, loadLimits.entriesPerRequestMax)
    if (inFlight.size >= loadLimits.requestsInFlightMax) return count
    const sending = this.#send(journal.open(count), isSingle).finally(() => inFlight.delete(sending))
    inFlight.add(sending)
    return count
  }

  async #send(numbers: readonly number[], isSingle: boolean): Promise<void> {
    const { journal } = this.#options
    const entries = numbers.map((number) => this.#makeEntry(number))
    const response = await this.#post(JSON.stringify(isSingle ? entries[0] : { logs: entries }))
    const { status, body, text } = response ?? { status: 0 }
    if (status !== 202) {
      journal.settle(numbers, status === 0 ? 'unknown' : isTransient(status) ? 'refused' : 'rejected')
      return
    }
    const { accepted = 1, rejected = 0, errors = [] } = body as Partial<BatchResponse>
    const indexes = new Set(errors.map(({ index }) => index))
    for (const [index, number] of numbers.entries())
      journal.settle([number], indexes.has(index) ? 'rejected' : 'acknowledged')
    if (rejected !== indexes.size || accepted + rejected !== numbers.length)
      throw new Error(`the counts in the response to a batch do not add up: ${text}`)
  }

  #makeEntry(number: number): object {
    const { journal, random } = this.#options
    return {
      level: random() < loadLimits.invalidShare ? 'invalid' : 'info',
      message: journal.message(number),
      service: random() < loadLimits.bracketShare ? 'chaos[' : 'chaos',
      ...(random() < loadLimits.scatteredShare && { timestamp: this.#anyTime() }),
      metadata: { number, noise: String(random()).repeat(integer(random, 1, 6)) },
    }
  }

  #anyTime(): string {
    const { min, max } = loadLimits.scatteredYears
    const [fromMs, toMs] = [Date.UTC(min), Date.UTC(max)]
    return new Date(fromMs + this.#options.random() * (toMs - fromMs)).toISOString()
  }

  async #post(body: string): Promise<LogsResponse | undefined> {
    const { random } = this.#options
    return random() < loadLimits.keyedShare ? this.#postKeyed(body) : this.#tryPost(body)
  }

  /** Retries until the response is final, or it is time to give up. */
  async #postKeyed(body: string): Promise<LogsResponse | undefined> {
    const { random } = this.#options
    const key = randomUUID()
    const giveUpAtMs = performance.now() + loadLimits.retryForMs
    let response = await this.#tryPost(body, key)
    while (isTransient(response?.status ?? 0) && performance.now() < giveUpAtMs) {
      await pause(loadLimits.retryIntervalMs)
      response = await this.#tryPost(body, key)
    }
    if (response?.status === 202 && random() < loadLimits.repeatedShare)
      await this.#repeat(body, key, response)
    return response
  }

  /** @throws when the response is not the first request's response, or not a replay although the request had rows */
  async #repeat(body: string, key: string, first: LogsResponse): Promise<void> {
    const again = await this.#tryPost(body, key)
    // A replay costs entries of the rate limit, too.
    if (again === undefined || isTransient(again.status) || again.status === RATE_LIMITED) return
    // A request without accepted entries has no idempotency record.
    const isRepeated = isReplay(again) || (first.body as Partial<BatchResponse>).accepted === 0
    if (!isRepeated || again.status !== first.status || again.text !== first.text) {
      throw new Error(`a request was answered differently: ${first.text}, then ${again.status} ${again.text}`)
    }
  }

  /** Sends once. Undefined when no complete response arrived. */
  async #tryPost(body: string, idempotencyKey?: string): Promise<LogsResponse | undefined> {
    const { journal, apiUrls, random, apiKey } = this.#options
    const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
    try {
      const response = await postLogs({ apiUrl: pick(random, apiUrls), apiKey }, body, headers)
      journal.countAnswer(isReplay(response) ? `${response.status} replayed` : String(response.status))
      return response
    } catch (error) {
      // `fetch` has the error of the connection as its cause.
      const { name, cause } = error as Error
      journal.countAnswer(cause instanceof Error && 'code' in cause ? String(cause.code) : name)
      return undefined
    }
  }
}

interface BatchResponse {
  readonly accepted: number
  readonly rejected: number
  readonly errors?: readonly { readonly index: number }[]
}

function isReplay({ headers }: LogsResponse): boolean {
  return headers.get('idempotency-replayed') === 'true'
}
