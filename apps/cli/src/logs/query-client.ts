import { keepText, parseJsonExactly } from '@sluice/rows'
import { type Backoff, backoffMs, processClock, withTimeout } from '@sluice/runtime'
import type { Context } from '../context.ts'
import { CliError, describeNetworkError } from '../errors.ts'
import type { HttpAccess } from '../service-access.ts'
import { redactUrl } from '../terminal.ts'

/** An entry as the query API answers it: the columns that it has, and its metadata. */
export type Entry = Readonly<Record<string, unknown>> &
  Readonly<Record<'id' | 'timestamp' | 'received_at' | 'level' | 'message', string>>

/** How much of an answer is final, and which limit has ended it early. */
export interface Completeness {
  readonly complete_until: string | null
  readonly limited_by?: string | undefined
}

type Parameters = Readonly<Record<string, string | number | undefined>>

const limits = {
  /** Longer than any query may take. */
  answerMs: 300_000,
  /** A tail has an event each second. The connection of one that is silent is lost. */
  silenceMs: 20_000,
} as const

/** Entries can usually be read a second after they are accepted. Those of a tail are late until they take half of this again. */
export const LATE_S = 10

/** Pauses while the query API is unavailable. It recovers within seconds after a restart. */
const retryBackoff: Backoff = { baseMs: 200, maxMs: 5_000 }

/** The connection failed, or the query API answered with a problem. */
export class QueryError extends CliError {
  /** Whether the same request may succeed later. */
  readonly isTransient: boolean = true
  /** What is wrong in the text of the query, if that is the problem. */
  readonly places: readonly { readonly position: number; readonly message: string }[] = []
}

interface TailEvent extends Partial<Completeness> {
  readonly id: string | undefined
  readonly entries?: readonly Entry[]
  /** How many entries are left out. */
  readonly count?: number
}

/** Reads the entries of the key's project. Every request ends when the signal is aborted. */
export class QueryClient {
  readonly #access: HttpAccess
  readonly #signal: AbortSignal
  readonly #name: string

  constructor(access: HttpAccess, signal: AbortSignal) {
    this.#access = access
    this.#signal = signal
    this.#name = `the query API at ${redactUrl(access.url)}`
  }

  /** @throws QueryError */
  async get<Answer>(operation: string, parameters: Parameters): Promise<Answer> {
    const response = await this.#request(operation, parameters, AbortSignal.timeout(limits.answerMs))
    return parseJsonExactly(await response.text().catch(this.#fail), keepText) as Answer
  }

  /**
   * The entries of a tail, each once: a connection goes on after the last event of the one before. Ends only when the signal is aborted.
   *
   * @param report is told about an outage, and about entries that are late or left out
   */
  async *follow(
    parameters: Parameters,
    { random, nowMs }: Pick<Context, 'random' | 'nowMs'>,
    report: (message: string) => Promise<void>,
  ): AsyncGenerator<readonly Entry[]> {
    let lastId: string | undefined
    let [completeMs, isLate] = [nowMs(), false]
    for (let failures = 0; !this.#signal.aborted;) {
      let reason = `${this.#name} closed the connection`
      try {
        for await (const { id, entries, count, complete_until: until } of this.#tail(parameters, lastId)) {
          if (failures > 1) await report(`${this.#name} is available again`)
          failures = 0
          if (entries !== undefined) yield entries
          if (count !== undefined) await report(`${count} entries are left out: too many arrive`)
          lastId = id ?? lastId
          if (typeof until === 'string') completeMs = Date.parse(until)
          const lagS = (nowMs() - completeMs) / 1_000
          if (isLate ? lagS > LATE_S / 2 : lagS <= LATE_S) continue
          isLate = !isLate
          await report(isLate ? `entries are over ${LATE_S} s late` : 'entries are on time again')
        }
      } catch (error) {
        if (!(error instanceof QueryError && error.isTransient)) throw error
        reason = error.message
      }
      // The first may be a restart that nobody notices.
      if (++failures === 2) await report(`${reason}; retrying until it recovers`)
      await processClock.sleep(backoffMs(failures, retryBackoff, random()), this.#signal)
    }
  }

  async *#tail(parameters: Parameters, lastId: string | undefined): AsyncGenerator<TailEvent> {
    const ended = new AbortController()
    const inTime = <T>(step: Promise<T>): Promise<T> => withTimeout(step, limits.silenceMs).catch(this.#fail)
    try {
      const headers = lastId === undefined ? {} : { 'last-event-id': lastId }
      const { body } = await inTime(this.#request('tail', parameters, ended.signal, headers))
      const chunks = body?.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
      if (chunks === undefined) return
      for (let rest = ''; ;) {
        const { done, value } = await inTime(chunks.next())
        if (done === true) return
        const events = `${rest}${value}`.split('\n\n')
        rest = events.pop() ?? ''
        yield* events.map(parseEvent)
      }
    } finally {
      ended.abort()
    }
  }

  async #request(
    operation: string,
    parameters: Parameters,
    end: AbortSignal,
    headers = {},
  ): Promise<Response> {
    const { url, key } = this.#access
    const address = new URL(`${url}/v1/query/${operation}`)
    for (const [name, value] of Object.entries(parameters))
      if (value !== undefined) address.searchParams.set(name, String(value))
    const response = await fetch(address, {
      headers: { ...headers, authorization: `Bearer ${key}` },
      signal: AbortSignal.any([this.#signal, end]),
    }).catch(this.#fail)
    if (response.ok) return response
    const { status } = response
    const { code, detail, errors } = (await response.json().catch(() => ({}))) as {
      readonly code?: string
      readonly detail?: string
      readonly errors?: QueryError['places']
    }
    const hint = status === 401 ? '; check SLUICE_READ_KEY' : ''
    const places = code === 'invalid_query' ? (errors ?? []) : []
    const reason = `${this.#name} answers ${status}: ${detail ?? code ?? response.statusText}${hint}`
    throw Object.assign(new QueryError(reason), { isTransient: status >= 500 || status === 429, places })
  }

  /** @throws QueryError, or an error of another kind as it is */
  readonly #fail = (error: unknown): never => {
    const isKnown = this.#signal.aborted || error instanceof CliError
    const reason = isKnown ? undefined : describeNetworkError(error)
    if (reason === undefined) throw error
    throw new QueryError(`${this.#name} ${reason}; \`npm start\` starts the local services`, { cause: error })
  }
}

/** Other events than those with entries or a count only have an id. */
function parseEvent(text: string): TailEvent {
  const fields = text.split('\n').map((line) => line.split(/: ?(.*)/s, 2))
  const { id, data = '{}' } = Object.fromEntries(fields) as { readonly id?: string; readonly data?: string }
  return { ...(parseJsonExactly(data, keepText) as object), id }
}
