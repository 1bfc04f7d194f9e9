import { HttpServer } from '@sluice/harness/http-server'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { fakeContext, type FakeContext } from './fake-context.ts'

interface Asked {
  readonly operation: string
  readonly parameters: Readonly<Record<string, string>>
  readonly headers: IncomingHttpHeaders
  /** Resolves when the client has closed the connection. */
  readonly closed: Promise<void>
}

type Respond = (response: ServerResponse, asked: Asked) => void

/** A query API that gives the responses that a test has prepared, and records what it is asked. */
export class FakeQueryApi extends HttpServer {
  asked: Asked[] = []
  /** The responses to the next requests. The last one is given again and again. */
  responds: Respond[] = []

  constructor() {
    super((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
      const asked = {
        operation: pathname.replace('/v1/query/', ''),
        parameters: Object.fromEntries(searchParams),
        headers: request.headers,
        closed: new Promise<void>((resolve) => response.once('close', resolve)),
      }
      this.asked.push(asked)
      const respond = this.responds.length > 1 ? this.responds.shift() : this.responds[0]
      respond?.(response, asked)
    })
  }

  context(given: Parameters<typeof fakeContext>[0] = {}): FakeContext {
    return fakeContext({ ...given, environment: { SLUICE_QUERY_URL: this.url, SLUICE_READ_KEY: 'slk_read' } })
  }
}

export const answer =
  (body: unknown, status = 200): Respond =>
  (response) =>
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(typeof body === 'string' ? body : JSON.stringify(body))

export const problem = (status: number, detail: string, given: object = {}): Respond =>
  answer({ type: 'about:blank', title: 'Problem', status, detail, code: 'a_problem', ...given }, status)
