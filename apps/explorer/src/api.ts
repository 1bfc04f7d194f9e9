import { parseJsonExactly } from '@sluice/rows/exact-json'
import type { Entry } from './entry.ts'
import type { Histogram } from './bars.ts'

/** What the API answers when it refuses, and what the page says when there is no answer. */
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly errors: readonly { readonly position: number; readonly message: string }[]
  readonly retryAfterMs: number

  constructor(status: number, body: Readonly<Record<string, unknown>>, retryAfterMs = 0) {
    const text = (name: string, absent: string): string => {
      const value = body[name]
      return typeof value === 'string' ? value : absent
    }
    super(text('title', `The server answered ${status}`))
    this.status = status
    this.code = text('code', '')
    this.detail = text('detail', '')
    this.errors = Array.isArray(body['errors']) ? (body['errors'] as Problem['errors']) : []
    this.retryAfterMs = retryAfterMs
  }

  /** Whether the same request would be refused again. */
  get isFinal(): boolean {
    return this.status >= 400 && this.status < 429
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
  readonly scopes?: readonly string[]
}
export type Parameters = Readonly<Record<string, string | number>>

/** A server that restarts or is busy is asked again this often before a person is told. */
const RETRIES_MAX = 2
/** A longer wait is the person's decision. */
const RETRY_WAIT_MS_MAX = 3000
/** A response's date has whole seconds: less than this says nothing about the clocks. */
const CLOCK_DIFFERENCE_MS_MIN = 2000

const wait = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })

export interface Api {
  get(operation: 'logs' | 'context', parameters: Parameters, signal: AbortSignal): Promise<Page>
  get(operation: 'histogram', parameters: Parameters, signal: AbortSignal): Promise<Histogram & Completeness>
  get(operation: 'fields', parameters: Parameters, signal: AbortSignal): Promise<Fields>
  get(operation: 'values', parameters: Parameters, signal: AbortSignal): Promise<Counts>
  /** For what is asked for again and again: without a retry. */
  once<Answer>(operation: string, signal: AbortSignal): Promise<Answer>
  post(operation: string, body: object): Promise<void>
  session(method: 'GET' | 'POST' | 'DELETE', key?: string): Promise<Session | undefined>
  tail(parameters: Parameters, lastEventId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>
  /** Now, on the server's clock. */
  nowMs(): number
  wait(ms: number, signal: AbortSignal): Promise<void>
}

export const urlOf = (operation: string, parameters: Parameters): string =>
  `/v1/query/${operation}?${new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)])).toString()}`

const withBody = (body: object): RequestInit => ({
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json' },
})

export function createApi(signedOut: () => void): Api {
  let clockDifferenceMs = 0

  async function request(url: string, init: RequestInit): Promise<Response> {
    let response: Response
    try {
      response = await fetch(url, { credentials: 'same-origin', ...init })
    } catch (error) {
      if (init.signal?.aborted === true) throw error
      throw new Problem(0, {
        title: 'The server cannot be reached',
        detail: 'It may be restarting, or the connection is down.',
      })
    }
    const date = Date.parse(response.headers.get('date') ?? '')
    const difference = date - Date.now()
    if (Number.isFinite(difference))
      clockDifferenceMs = Math.abs(difference) < CLOCK_DIFFERENCE_MS_MIN ? 0 : difference
    if (response.ok) return response
    if (response.status === 401) signedOut()
    const body = await response.text()
    let parsed: Record<string, unknown> = {}
    try {
      parsed = JSON.parse(body) as Record<string, unknown>
    } catch {
      // A proxy's page, for example.
    }
    throw new Problem(response.status, parsed, Number(response.headers.get('retry-after') ?? 0) * 1000)
  }

  async function get(operation: string, parameters: Parameters, signal: AbortSignal): Promise<unknown> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        const response = await request(urlOf(operation, parameters), { signal })
        return parseJsonExactly(await response.text())
      } catch (error) {
        const isTransient = error instanceof Problem && [0, 429, 502, 503].includes(error.status)
        if (
          !isTransient ||
          attempt >= RETRIES_MAX ||
          signal.aborted ||
          error.retryAfterMs > RETRY_WAIT_MS_MAX
        )
          throw error
        await wait(error.retryAfterMs || 300 * (attempt + 1), signal)
      }
    }
  }

  return {
    get: get as Api['get'],
    wait,
    once: async <Answer>(operation: string, signal: AbortSignal) =>
      (await (await request(urlOf(operation, {}), { signal })).json()) as Answer,
    post: async (operation, body) =>
      void (await request(urlOf(operation, {}), { method: 'POST', ...withBody(body) })),
    async session(method, key) {
      const body = key === undefined ? {} : withBody({ key })
      try {
        const response = await request('/v1/query/session', { method, ...body })
        return response.status === 204 ? undefined : ((await response.json()) as Session)
      } catch (error) {
        if (method === 'GET' && error instanceof Problem && error.status === 401) return undefined
        throw error
      }
    },
    async tail(parameters, lastEventId, signal) {
      const { body } = await request(urlOf('tail', parameters), {
        signal,
        headers: {
          accept: 'text/event-stream',
          ...(lastEventId === '' ? {} : { 'last-event-id': lastEventId }),
        },
      })
      if (body === null) throw new Problem(0, { title: 'The server sent no events' })
      return body
    },
    nowMs: () => Date.now() + clockDifferenceMs,
  }
}
