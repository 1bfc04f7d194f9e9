import { randomUUID } from 'node:crypto'
import { Agent, request, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Journal } from './journal.ts'
import { integer, pick, type Random } from './random.ts'

export interface LoadOptions {
  readonly journal: Journal
  readonly apiUrls: readonly string[]
  readonly apiKey: string
  readonly random: Random
  /** Of all clients together. */
  readonly entriesPerSecond: number
  readonly clients?: number
}

export const loadLimits = {
  clients: 4,
  /** As many entries as fall due in it are sent together, as one request or several. */
  tickMs: 100,
  entriesPerBatchMax: 40,
  /** The API answers within two seconds whatever is down; longer only if it is frozen or cut off. */
  answerDeadlineMs: 10_000,
  /** A client that waits for this many answers sends nothing: more would only pile up before a frozen API. */
  requestsInFlightMax: 100,
  singleShare: 0.5,
  /** Requests that carry an idempotency key, and are sent again until they are answered for good. */
  keyedShare: 0.3,
  /** From one attempt to the next. */
  retryIntervalMs: 200,
  /** Longer than what takes a process to come back; then the client gives up. */
  retryForMs: 20_000,
  /** Of the requests with a key that were taken, those that are sent once more all the same. */
  repeatedShare: 0.2,
  /** Entries that the API must reject, and that must not be stored. */
  invalidShare: 0.02,
} as const

/**
 * Several clients, each with connections of its own, that send at a constant rate whatever the answers are, and write
 * down what they know of each entry. No entry is sent twice but with an idempotency key: so whatever is stored twice was
 * doubled behind the API.
 */
export class Load {
  readonly #clients: readonly Client[]
  readonly #stopping = new AbortController()
  #running: Promise<unknown> | undefined

  constructor(options: LoadOptions) {
    const count = options.clients ?? loadLimits.clients
    const entriesPerTick = (options.entriesPerSecond / count / 1000) * loadLimits.tickMs
    this.#clients = Array.from({ length: count }, () => new Client(options, entriesPerTick))
  }

  start(): void {
    this.#running ??= Promise.all(this.#clients.map((client) => client.run(this.#stopping.signal)))
  }

  /** Sends nothing more, and resolves when every answer has come or is given up. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
    for (const client of this.#clients) client.close()
  }
}

class Client {
  readonly #options: LoadOptions
  readonly #entriesPerTick: number
  readonly #agent = new Agent({ keepAlive: true })
  readonly #inFlight = new Set<Promise<void>>()

  constructor(options: LoadOptions, entriesPerTick: number) {
    this.#options = options
    this.#entriesPerTick = entriesPerTick
  }

  async run(signal: AbortSignal): Promise<void> {
    let credit = 0
    let dueAtMs = performance.now()
    while (!signal.aborted) {
      for (credit += this.#entriesPerTick; credit >= 1;) credit -= this.#send()
      dueAtMs += loadLimits.tickMs
      await sleep(Math.max(0, dueAtMs - performance.now()), undefined, { signal }).catch(() => undefined)
    }
    await Promise.all(this.#inFlight)
  }

  close(): void {
    this.#agent.destroy()
  }

  /** @returns how many entries were sent, or would have been */
  #send(): number {
    const { journal, random } = this.#options
    const isSingle = random() < loadLimits.singleShare
    const count = isSingle ? 1 : integer(random, 2, loadLimits.entriesPerBatchMax)
    if (this.#inFlight.size >= loadLimits.requestsInFlightMax) return count
    const numbers = journal.open(count)
    const sending = (isSingle ? this.#sendSingle(numbers) : this.#sendBatch(numbers)).finally(() =>
      this.#inFlight.delete(sending),
    )
    this.#inFlight.add(sending)
    return count
  }

  async #sendSingle(numbers: readonly number[]): Promise<void> {
    const { journal } = this.#options
    const answer = await this.#post(JSON.stringify(this.#makeEntry(numbers[0] ?? 0)))
    if (answer?.status === 202) journal.settle(numbers, 'acknowledged')
    else this.#settleFailed(numbers, answer)
  }

  async #sendBatch(numbers: readonly number[]): Promise<void> {
    const { journal } = this.#options
    const answer = await this.#post(
      JSON.stringify({ logs: numbers.map((number) => this.#makeEntry(number)) }),
    )
    if (answer?.status !== 202) return this.#settleFailed(numbers, answer)
    const { accepted, rejected, errors = [] } = JSON.parse(answer.text) as BatchAnswer
    const indexes = new Set(errors.map(({ index }) => index))
    const settled = Map.groupBy(numbers.keys(), (index) => (indexes.has(index) ? 'rejected' : 'acknowledged'))
    for (const [outcome, members] of settled) {
      journal.settle(
        members.map((index) => numbers[index] ?? -1),
        outcome,
      )
    }
    if (rejected !== indexes.size || accepted + rejected !== numbers.length) {
      throw new Error(`the counts of a batch's answer do not add up: ${answer.text}`)
    }
  }

  #settleFailed(numbers: readonly number[], answer: Answer | undefined): void {
    const status = answer?.status ?? 0
    this.#options.journal.settle(numbers, status >= 500 ? 'refused' : status >= 400 ? 'rejected' : 'unknown')
  }

  #makeEntry(number: number): object {
    const { journal, random } = this.#options
    return {
      level: random() < loadLimits.invalidShare ? 'invalid' : 'info',
      message: journal.message(number),
      service: 'chaos',
      metadata: {
        number,
        noise: random()
          .toString(36)
          .repeat(integer(random, 1, 6)),
      },
    }
  }

  /** Undefined when no whole answer came. */
  async #post(body: string): Promise<Answer | undefined> {
    const { random } = this.#options
    return random() < loadLimits.keyedShare ? this.#postKeyed(body) : this.#tryPost(body)
  }

  /** Sends again until there is an answer for good, or it is time to give up. */
  async #postKeyed(body: string): Promise<Answer | undefined> {
    const { random } = this.#options
    const key = randomUUID()
    const giveUpAtMs = performance.now() + loadLimits.retryForMs
    let answer = await this.#tryPost(body, key)
    while ((answer === undefined || answer.status >= 500) && performance.now() < giveUpAtMs) {
      await sleep(loadLimits.retryIntervalMs)
      answer = await this.#tryPost(body, key)
    }
    if (answer?.status === 202 && random() < loadLimits.repeatedShare) await this.#repeat(body, key, answer)
    return answer
  }

  /** @throws when the answer is another one than the first */
  async #repeat(body: string, key: string, first: Answer): Promise<void> {
    const again = await this.#tryPost(body, key)
    if (again === undefined || again.status >= 500) return
    if (!again.isReplay || again.status !== first.status || again.text !== first.text) {
      throw new Error(`a request was answered anew: ${first.text}, then ${again.status} ${again.text}`)
    }
  }

  /** Undefined when no whole answer came. */
  async #tryPost(body: string, idempotencyKey?: string): Promise<Answer | undefined> {
    const { journal, apiUrls, random, apiKey } = this.#options
    try {
      const answer = await post(pick(random, apiUrls), { body, agent: this.#agent, apiKey, idempotencyKey })
      journal.countAnswer(answer.isReplay ? `${answer.status} replayed` : String(answer.status))
      return answer
    } catch (error) {
      journal.countAnswer(error instanceof Error && 'code' in error ? String(error.code) : 'unknown')
      return undefined
    }
  }
}

interface BatchAnswer {
  readonly accepted: number
  readonly rejected: number
  readonly errors?: readonly { readonly index: number }[]
}

interface Answer {
  readonly status: number
  /** Whether the API says that it has given this answer before. */
  readonly isReplay: boolean
  readonly text: string
}

/** Posts once, over Node's own client: it never sends a request again by itself. @throws when no whole answer came */
function post(
  apiUrl: string,
  options: { body: string; agent: Agent; apiKey: string; idempotencyKey: string | undefined },
): Promise<Answer> {
  const { body, agent, apiKey, idempotencyKey } = options
  return new Promise((resolve, reject) => {
    const outgoing = request(`${apiUrl}/v1/logs`, {
      method: 'POST',
      agent,
      headers: {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      signal: AbortSignal.timeout(loadLimits.answerDeadlineMs),
    })
    outgoing.on('error', reject)
    outgoing.once('response', (response) => {
      readAnswer(response).then(resolve, reject)
    })
    outgoing.end(body)
  })
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  let text = ''
  response.setEncoding('utf8')
  for await (const piece of response) text += piece as string
  if (!response.complete || response.statusCode === undefined) throw new Error('the answer is not whole')
  const isReplay = response.headers['idempotency-replayed'] === 'true'
  return { status: response.statusCode, isReplay, text }
}
