import type { Project } from '@sluice/projects'
import type { Span } from '@sluice/traces'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ProjectBodies } from '../overload/body-budget.ts'
import type { Allowance } from '../rate-limits/allowance.ts'
import type { Amount } from '../rate-limits/rate-limit.ts'
import type { RequestTraces } from '../traces/request-traces.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The project that the API key belongs to. Null before authentication. */
    project: Project | null
    /** The project's rate limit. Null for a project without one. */
    allowance: Allowance | null
    /** What the budget of bodies holds for this request. */
    projectBodies: ProjectBodies | null
    bodyBytes: number
    /** The part of the request's cost that was taken before its entries were counted. Null on the fast path. */
    paid: Amount | null
    /** Null unless the request is traced. */
    span: Span | null
  }
}

/**
 * Declares what a request with entries carries from its admission to its answer. With traces, a hook of all routes ends the span of a
 * request, even if its connection is closed before the answer.
 */
export function decorateRequests(app: FastifyInstance, traces: RequestTraces | undefined): void {
  app.decorateRequest('project', null)
  app.decorateRequest('allowance', null)
  app.decorateRequest('projectBodies', null)
  app.decorateRequest('bodyBytes', 0)
  app.decorateRequest('paid', null)
  app.decorateRequest('span', null)
  if (traces === undefined) return
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (request.span !== null) traces.end(request.span, request, reply)
    done()
  })
}

/** A request with entries. Its body arrives as bytes. */
export type IntakeRequest = FastifyRequest<{ Body: Buffer | undefined }>

/** Stands for the body of a request without one. */
export const emptyBody = Buffer.alloc(0)
