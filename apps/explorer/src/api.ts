import type { Signal } from '@preact/signals'
import { keepText, parseJsonExactly } from '@sluice/rows/exact-json'
import type { Entry } from './entry.ts'

/** After failures in a row: short, for a server that restarts, then longer. */
const RETRY_MS = 250
const RETRY_MS_MAX = 5000
/** How often a server that restarts or is busy is asked again before the page shows the problem. */
const RETRIES_MAX = 2
/** A longer wait is the person's decision. */
const RETRY_WAIT_MS_MAX = 3000
/** A response's date has whole seconds: less than this says nothing about the clocks. */
const CLOCK_DIFFERENCE_MS_MIN = 2000

export interface ProblemBody {
  readonly title?: string
  readonly code?: string
  readonly detail?: string | undefined
  readonly errors?: readonly { readonly position: number; readonly message: string }[]
}

/** What the API answers when it refuses, and what the page says when there is no answer. */
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly errors: NonNullable<ProblemBody['errors']>
  readonly #retryAfterMs: number

  constructor(status: number, body: ProblemBody, retryAfterMs = 0) {
    super(body.title ?? `The server answered ${status}`)
    this.status = status
    this.code = body.code ?? ''
    this.detail = body.detail ?? ''
    this.errors = Array.isArray(body.errors) ? body.errors : []
    this.#retryAfterMs = retryAfterMs
  }

  static of(error: unknown, title = 'The answer cannot be read'): Problem {
    return error instanceof Problem ? error : new Problem(0, { title, detail: String(error) })
  }

  /** Whether the same request would be refused again. */
  get isFinal(): boolean {
    return this.status >= 400 && this.status < 429
  }

  /** How long to wait before the same request, after a number of failures in a row. */
  retryMs(failures: number): number {
    return this.#retryAfterMs || Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** failures)
  }
}

/** What an answer says about itself. */
export interface Completeness {
  readonly complete_until?: string | null
  readonly limited_by?: string
}
export interface Page extends Completeness {
  readonly entries: readonly Entry[]
  readonly next?: string | null
}
export interface Counts {
  readonly values: readonly { readonly value: string; readonly count: number }[]
}
export interface Fields {
  readonly fields: readonly { readonly name: string; readonly count: number }[]
  readonly sampled?: number
}
/** Of the key that the session stands for. */
interface Session {
  readonly project_id: string
  readonly scopes: readonly string[]
}
export type Parameters = Readonly<Record<string, string | number>>

/** What a part of the page shows: the answer to its request, or the problem. */
export interface Asked<Answer> {
  readonly loading: boolean
  readonly answer?: Answer | undefined
  readonly problem?: Problem
}

/**
 * Sets a part of the page to the answer of a request. The last one stays while it is on its way, and also after a problem if it is `kept`.
 * An answer to what the page no longer asks is dropped.
 */
export async function ask<Answer>(
  target: Signal<Asked<Answer>>,
  work: AbortSignal,
  request: Promise<Answer>,
  kept = false,
): Promise<void> {
  target.value = { ...target.peek(), loading: true }
  const before = kept ? target.peek().answer : undefined
  const asked = await request.then(
    (answer) => ({ loading: false, answer }),
    (error: unknown) => ({ loading: false, answer: before, problem: Problem.of(error) }),
  )
  if (!work.aborted) target.value = asked
}

/** Ends early when the signal is aborted. */
export const wait = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })

export const urlOf = (operation: string, parameters: Parameters): string =>
  `/v1/query/${operation}?${new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)])).toString()}`

const withBody = (body: object): RequestInit => ({
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json' },
})

/** The requests of the page. They throw a Problem, or the reason of their signal. */
export class Api {
  readonly #signedOut: () => void
  #clockDifferenceMs = 0

  /** @param signedOut is called when the server no longer knows the session */
  constructor(signedOut: () => void) {
    this.#signedOut = signedOut
  }

  /** Now, on the server's clock. */
  nowMs(): number {
    return Date.now() + this.#clockDifferenceMs
  }

  async get<Answer>(
    operation: string,
    parameters: Parameters,
    signal: AbortSignal,
    retriesMax = RETRIES_MAX,
  ): Promise<Answer> {
    for (let failures = 0; ; failures += 1)
      try {
        const response = await this.#request(urlOf(operation, parameters), { signal })
        return parseJsonExactly(await response.text(), keepText) as Answer
      } catch (error) {
        if (!(error instanceof Problem) || error.isFinal || failures === retriesMax) throw error
        const waitMs = error.retryMs(failures)
        if (waitMs > RETRY_WAIT_MS_MAX) throw error
        await wait(waitMs, signal)
      }
  }

  async post(operation: string, body: object): Promise<void> {
    await this.#request(urlOf(operation, {}), { method: 'POST', ...withBody(body) })
  }

  async session(method: 'GET' | 'POST' | 'DELETE', key?: string): Promise<Session | undefined> {
    const body = key === undefined ? {} : withBody({ key })
    try {
      const response = await this.#request('/v1/query/session', { method, ...body })
      return response.status === 204 ? undefined : ((await response.json()) as Session)
    } catch (error) {
      if (method === 'GET' && error instanceof Problem && error.status === 401) return undefined
      throw error
    }
  }

  async tail(
    parameters: Parameters,
    lastEventId: string | undefined,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    const { body } = await this.#request(urlOf('tail', parameters), { signal, headers })
    if (body === null) throw new Problem(0, { title: 'The server sent no events' })
    return body
  }

  async #request(url: string, init: RequestInit): Promise<Response> {
    const response = await fetch(url, init).catch((error: unknown) => {
      if (init.signal?.aborted === true) throw error
      throw new Problem(0, {
        title: 'The server cannot be reached',
        detail: 'It may be restarting, or the connection is down.',
      })
    })
    const difference = Date.parse(response.headers.get('date') ?? '') - Date.now()
    if (Number.isFinite(difference))
      this.#clockDifferenceMs = Math.abs(difference) < CLOCK_DIFFERENCE_MS_MIN ? 0 : difference
    if (response.ok) return response
    if (response.status === 401) this.#signedOut()
    // A proxy may answer with a page.
    const body = (await response.json().catch(() => undefined)) as ProblemBody | undefined
    throw new Problem(response.status, body ?? {}, Number(response.headers.get('retry-after') ?? 0) * 1000)
  }
}
