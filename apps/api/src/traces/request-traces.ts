import { stringSetting } from '@sluice/runtime'
import { parseTraceparent, type Span, type Traces } from '@sluice/traces'
import type { FastifyRequest } from 'fastify'
import type { ProblemCode } from '../problems.ts'

/**
 * Requests that a process traces per second. Callers decide which of their requests are traced, so without a limit they would decide what
 * traces cost.
 */
export const TRACED_PER_S_MAX = 100

/** Which requests are traced. Workers trace the batches of traced chunks. */
export const sampleSettings = {
  OTEL_TRACES_SAMPLER_ARG: stringSetting(
    { pattern: '^(0(\\.[0-9]{1,9})?|1(\\.0{1,9})?)$', default: '1' },
    `The part of the requests without a valid \`traceparent\` that is traced, from 0 to 1. A process traces at most ${TRACED_PER_S_MAX} requests per second.`,
  ),
} as const

interface RequestTracesOptions {
  readonly traces: Traces
  /** The part of the requests without a valid `traceparent` that is traced, 0 to 1. */
  readonly sampleRatio: number
  /** From 0 to below 1. */
  readonly random: () => number
  readonly monotonicMs: () => number
}

/** The attributes of a request's span. */
export const requestAttributes = {
  method: 'http.request.method',
  route: 'http.route',
  status: 'http.response.status_code',
  error: 'error.type',
  requestId: 'sluice.request.id',
  projectId: 'sluice.project.id',
  entries: 'sluice.request.entries',
  bytes: 'sluice.request.bytes',
  isReplay: 'sluice.request.is_replay',
} as const

/**
 * Makes the spans of requests. A request whose `traceparent` is valid is traced if its caller traces it. Of the others, a part is.
 *
 * A request that is not traced costs a look at one header, and a random number if it has none.
 */
export class RequestTraces {
  readonly #options: RequestTracesOptions
  #second = Number.NEGATIVE_INFINITY
  #tracedInSecond = 0

  constructor(options: RequestTracesOptions) {
    this.#options = options
  }

  /** To be called when the request is authenticated: others could use up what is traced per second. Null if it is not traced. */
  start(
    request: FastifyRequest,
    { startedMs, project }: { readonly startedMs: number; readonly project: { readonly id: string } },
  ): Span | null {
    const { traces, sampleRatio, random } = this.#options
    const { traceparent } = request.headers
    const parent = typeof traceparent === 'string' ? parseTraceparent(traceparent) : undefined
    const isSampled = parent === undefined ? random() < sampleRatio : parent.isSampled
    if (!isSampled || !this.#hasRoom()) return null
    const route = request.routeOptions.url
    return traces.start({
      name: `${request.method} ${route}`,
      kind: 'server',
      startMs: startedMs,
      parent,
      attributes: {
        [requestAttributes.method]: request.method,
        [requestAttributes.route]: route,
        [requestAttributes.requestId]: request.id,
        [requestAttributes.projectId]: project.id,
      },
    })
  }

  /** Ends the span of a request whose response is known. */
  end(span: Span, problem: ProblemCode | undefined, statusCode: number): void {
    span.set({ [requestAttributes.status]: statusCode, [requestAttributes.error]: problem })
    span.end(statusCode >= 500 ? 'error' : undefined)
  }

  #hasRoom(): boolean {
    const second = Math.floor(this.#options.monotonicMs() / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#tracedInSecond = 0
    }
    if (this.#tracedInSecond >= TRACED_PER_S_MAX) return false
    this.#tracedInSecond += 1
    return true
  }
}
