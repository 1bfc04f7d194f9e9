import { parseJsonExactly } from '@sluice/rows'
import { type Backoff, backoffMs, processClock, withTimeout } from '@sluice/runtime'
import { CliError, describeNetworkError, SILENT } from '../errors.ts'
import type { HttpAccess } from '../service-access.ts'
import { redactUrl } from '../terminal.ts'

/** An entry as the query API answers it: its columns, without those that it does not have, and its metadata. */
export interface Entry extends Readonly<Record<string, unknown>> {
  readonly id: string
  readonly timestamp: string
  readonly received_at: string
  readonly level: string
  readonly message: string
}

/** How much of an answer is final, and what it had to leave out. */
export interface Completeness {
  readonly complete_until: string | null
  readonly limited_by?: string
}

export type Parameters = Readonly<Record<string, string | undefined>>

export const queryLimits = {
  /** Longer than any query may take. */
  answerMs: 300_000,
  /** A tail has an event each second. One that is silent for this long has lost its connection. */
  silenceMs: 20_000,
} as const

/** Pauses while the query API is unavailable. It recovers within seconds after a restart. */
const retryBackoff: Backoff = { baseMs: 200, maxMs: 5_000 }

/** The query API has answered with a problem. */
export class QueryProblem extends CliError {
  readonly status: number
  readonly code: string
  readonly errors: readonly { readonly position: number; readonly message: string }[]

  constructor(message: string, status: number, { code = '', errors = [] }: Partial<QueryProblem>) {
    super(message)
    this.status = status
    this.code = code
    this.errors = errors
  }
}

/** The connection to the query API failed. */
class ConnectionError extends CliError {}

/** Whether the same request may succeed later. */
const isTransient = (error: unknown): error is CliError =>
  error instanceof ConnectionError || (error instanceof QueryProblem && /^(5..|429)$/.test(`${error.status}`))

interface TailEvent {
  readonly id: string | undefined
  readonly type: string
  readonly data: { readonly entries?: readonly Entry[]; readonly count?: number }
}

interface FollowOptions {
  readonly random: () => number
  readonly report: (message: string) => Promise<void>
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

  /** @throws CliError */
  async get<Answer>(operation: string, parameters: Parameters): Promise<Answer> {
    const deadline = AbortSignal.timeout(queryLimits.answerMs)
    const response = await this.#request(operation, parameters, AbortSignal.any([this.#signal, deadline]))
    return parseJsonExactly(await response.text().catch(this.#fail)) as Answer
  }

  /**
   * The entries of each event of a tail, each entry once: after a connection has ended, the next one goes on after the last event. An event's
   * entries are processed before the next ones are requested.
   */
  async *follow(parameters: Parameters, { random, report }: FollowOptions): AsyncGenerator<readonly Entry[]> {
    let lastId: string | undefined
    let failures = 0
    while (!this.#signal.aborted) {
      let reason = `${this.#name} closed the connection`
      try {
        for await (const { id, type, data } of this.#tail(parameters, lastId)) {
          if (failures > 1) await report(`${this.#name} is available again`)
          failures = 0
          if (type === 'entries' && data.entries !== undefined) yield data.entries
          if (type === 'skipped')
            await report(`${data.count} entries are left out: more arrive than can be shown`)
          lastId = id ?? lastId
        }
      } catch (error) {
        const isTransient =
          error instanceof QueryProblem ? error.isTransient : error instanceof ConnectionError
        if (this.#signal.aborted || !isTransient) throw error
        reason = error.message
      }
      failures += 1
      if (failures === 2) await report(`${reason}; retrying until it is available`)
      await processClock.sleep(backoffMs(failures, retryBackoff, random()), this.#signal)
    }
  }

  async *#tail(parameters: Parameters, lastId: string | undefined): AsyncGenerator<TailEvent> {
    const ended = new AbortController()
    const signal = AbortSignal.any([this.#signal, ended.signal])
    const headers = lastId === undefined ? {} : { 'last-event-id': lastId }
    try {
      const request = this.#request('tail', parameters, signal, headers)
      const { body } = await withTimeout(request, queryLimits.silenceMs).catch(this.#fail)
      if (body === null) return
      const chunks = body.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
      let rest = ''
      for (;;) {
        const { done, value } = await withTimeout(chunks.next(), queryLimits.silenceMs).catch(this.#fail)
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
    signal: AbortSignal,
    headers = {},
  ): Promise<Response> {
    const { url, key } = this.#access
    const given = Object.entries(parameters).filter(([, value]) => value !== undefined) as [string, string][]
    const address = `${url.replace(/\/+$/, '')}/v1/query/${operation}?${new URLSearchParams(given)}`
    const response = await fetch(address, {
      headers: { ...headers, authorization: `Bearer ${key}` },
      signal,
    }).catch(this.#fail)
    if (response.ok) return response
    const problem = problemOf(await response.text().catch(this.#fail))
    const hint = response.status === 401 ? ' (SLUICE_READ_KEY)' : ''
    const reason = problem.detail ?? `status ${response.status}`
    throw new QueryProblem(`${this.#name}${hint}: ${reason}`, response.status, problem)
  }

  /** @throws ConnectionError, or the error of an interruption as it is */
  readonly #fail = (error: unknown): never => {
    const isKnown = this.#signal.aborted || error instanceof CliError
    const reason = isKnown ? undefined : describeNetworkError(error)
    if (reason === undefined) throw error
    const advice = reason === SILENT ? '' : '; `npm start` starts the local services'
    throw new ConnectionError(`${this.#name} ${reason}${advice}`, { cause: error })
  }
}

function problemOf(body: string): Partial<QueryProblem> & { readonly detail?: string } {
  try {
    return (parseJsonExactly(body) ?? {}) as { readonly detail?: string }
  } catch {
    // Of a proxy, for example.
    return {}
  }
}

function parseEvent(text: string): TailEvent {
  const fields = new Map(
    text.split('\n').map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trimStart()]
    }),
  )
  const data = parseJsonExactly(fields.get('data') ?? '{}') as TailEvent['data']
  return { id: fields.get('id'), type: fields.get('event') ?? 'message', data }
}
