import { stringSetting } from '@sluice/runtime'
import { parseTraceparent, type Span, type Traces } from '@sluice/traces'
import type { FastifyRequest } from 'fastify'

/** Callers decide which of their requests are traced. Without a limit, they would decide what traces cost. */
export const TRACED_PER_S_MAX = 100

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

export type RequestTraces = ReturnType<typeof requestTraces>

/**
 * Makes the spans of requests. A request whose `traceparent` is valid is traced if its caller traces it. Of the others, a part is.
 *
 * A request that is not traced costs a look at one header, and a random number if it has none.
 *
 * @returns to be called when the request is authenticated: others could use up what is traced per second. Null if it is not traced
 */
export function requestTraces({ traces, sampleRatio, random, monotonicMs }: RequestTracesOptions) {
  let second = Number.NEGATIVE_INFINITY
  let tracedInSecond = 0
  function hasRoom(): boolean {
    const now = Math.floor(monotonicMs() / 1_000)
    tracedInSecond = now === second ? tracedInSecond + 1 : 1
    second = now
    return tracedInSecond <= TRACED_PER_S_MAX
  }
  return (request: FastifyRequest, startMs: number, projectId: string): Span | null => {
    const { traceparent } = request.headers
    const parent = typeof traceparent === 'string' ? parseTraceparent(traceparent) : undefined
    const isSampled = parent === undefined ? random() < sampleRatio : parent.isSampled
    if (!isSampled || !hasRoom()) return null
    const route = request.routeOptions.url
    return traces.start({
      name: `${request.method} ${route}`,
      kind: 'server',
      startMs,
      parent,
      attributes: {
        [requestAttributes.method]: request.method,
        [requestAttributes.route]: route,
        [requestAttributes.requestId]: request.id,
        [requestAttributes.projectId]: projectId,
      },
    })
  }
}
