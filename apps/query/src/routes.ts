import type { FastifyInstance, FastifyReply } from 'fastify'
import { type Asked, type OperationDependencies, Operations } from './operations.ts'
import { type OperationName, operationParameters, type Parameters, readParameters } from './parameters.ts'
import type { QueryMetrics } from './query-metrics.ts'
import type { QuerySlots } from './query-slots.ts'

export interface QueryDependencies extends OperationDependencies {
  readonly slots: QuerySlots
  readonly metrics: Pick<QueryMetrics, 'observe'>
}

/** The client has closed its connection. Nobody gets an answer. */
export class ClientGoneError extends Error {
  override name = 'ClientGoneError'
}

/** Adds a route for each operation. A request is answered unless there is no place for it, and ends when its client goes. */
export function queryRoutes(app: FastifyInstance, dependencies: QueryDependencies): void {
  const { access, clock, metrics, slots, tails } = dependencies
  const operations = new Operations(dependencies)
  for (const name of Object.keys(operationParameters) as OperationName[]) {
    const known: Parameters = operationParameters[name].parameters
    const answer = operations[name].bind(operations) as (asked: Asked) => Promise<FastifyReply>
    app.get(`/v1/query/${name}`, async (request, reply) => {
      const startedMs = clock.nowMs()
      const gone = new AbortController()
      const { signal } = gone
      reply.raw.once('close', () => gone.abort(new ClientGoneError('the client has closed its connection')))
      const project = await access.projectOf(request)
      const given = readParameters(known, request.query as Readonly<Record<string, unknown>>)
      // A response that has closed tells nobody, so what it takes from here on would never be given back.
      signal.throwIfAborted()
      // A viewer of a tail has a place among viewers: most have no query of their own.
      reply.raw.once('close', (name === 'tail' ? tails.places : slots).take(project.id))
      try {
        const parameters = given as Asked['parameters']
        return await answer({ project, parameters, request, reply, signal })
      } finally {
        metrics.observe((clock.nowMs() - startedMs) / 1_000, name)
      }
    })
  }
}
