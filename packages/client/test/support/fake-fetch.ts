import { vi } from 'vitest'

/** A request that waits for its response. */
export interface FakeRequest {
  readonly key: string
  readonly messages: readonly unknown[]
  readonly body: string
  readonly signal: AbortSignal
  /** @param body a string as it is, or a value as JSON */
  respond(status: number, body?: unknown, headers?: Readonly<Record<string, string>>): void
  accept(): void
  fail(error: unknown): void
}

/** A `fetch` whose responses a test sends. Bodies must not be compressed. */
export class FakeFetch {
  readonly requests: FakeRequest[] = []
  /** Whether to accept requests at once. */
  isAccepting = false

  readonly fetch = (_url: unknown, init: RequestInit = {}): Promise<Response> =>
    new Promise((resolve, reject) => {
      const body = new TextDecoder().decode(init.body as Uint8Array)
      const { logs } = JSON.parse(body) as { logs: { message: unknown }[] }
      const { signal } = init as { signal: AbortSignal }
      signal.addEventListener('abort', () => reject(signal.reason as Error))
      const request: FakeRequest = {
        key: new Headers(init.headers).get('idempotency-key') ?? '',
        messages: logs.map(({ message }) => message),
        body,
        signal,
        respond: (status, content, headers = {}) => {
          const text =
            content === undefined || typeof content === 'string' ? content : JSON.stringify(content)
          resolve(new Response(text ?? null, { status, headers }))
        },
        accept: () => request.respond(202, { success: true, accepted: logs.length, rejected: 0 }),
        fail: reject,
      }
      this.requests.push(request)
      if (this.isAccepting) request.accept()
    })

  /** The messages of each request. */
  get messages(): unknown[] {
    return this.requests.map(({ messages }) => messages)
  }

  get last(): FakeRequest {
    const last = this.requests.at(-1)
    if (last === undefined) throw new Error('there was no request')
    return last
  }

  /** Ends the last request, and lets the client handle it. */
  async respond(...response: Parameters<FakeRequest['respond']>): Promise<void> {
    this.last.respond(...response)
    await pass(0)
  }

  async accept(): Promise<void> {
    this.last.accept()
    await pass(0)
  }

  async fail(error: unknown): Promise<void> {
    this.last.fail(error)
    await pass(0)
  }

  /** Rejects the requests that match, and accepts the others. */
  async rejectIf(matches: (request: FakeRequest) => boolean, status: number, body?: unknown): Promise<void> {
    for (const request of this.requests) {
      if (matches(request)) request.respond(status, body)
      else request.accept()
    }
    await pass(0)
  }

  /** Ends all requests that wait, but lets the client handle nothing yet. */
  respondAll(...response: Parameters<FakeRequest['respond']>): void {
    for (const request of this.requests) request.respond(...response)
  }

  failAll(): void {
    for (const request of this.requests) request.fail(refused())
  }
}

/** The problem document of the API. */
export const problemOf = (code: string): object => ({ title: 'Problem', detail: `Detail of ${code}.`, code })

/** What Node's `fetch` throws when nothing listens at the address. */
export function refused(): TypeError {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  return new TypeError('fetch failed', { cause })
}

/** Advances the fake timers and clocks. */
export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms)
}
