import type { Project } from '@sluice/projects'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ReadAccess } from './access.ts'
import { type Asked, type OperationDependencies, Operations } from './operations.ts'
import { type OperationName, operationParameters, type Parameters, readParameters } from './parameters.ts'
import type { QueryMetrics } from './query-metrics.ts'
import type { QuerySlots } from './query-slots.ts'

export interface QueryDependencies extends OperationDependencies {
  readonly access: ReadAccess
  readonly slots: QuerySlots
  readonly metrics: Pick<QueryMetrics, 'observe'>
}

/** The client has closed its connection. Nobody gets an answer. */
export class ClientGoneError extends Error {
  override name = 'ClientGoneError'
}

/** Adds a route for each operation. */
export function queryRoutes(app: FastifyInstance, dependencies: QueryDependencies): void {
  const { slots, tails } = dependencies
  const operations = new Operations(dependencies)
  for (const name of Object.keys(operationParameters) as OperationName[]) {
    // A viewer of a tail has a place among viewers: most have no query of their own.
    const takePlace = ({ id }: Project): (() => void) =>
      name === 'tail' ? tails.takePlace(id) : slots.take(id)
    const handle = operations[name].bind(operations) as (asked: Asked) => Promise<FastifyReply>
    app.get(`/v1/query/${name}`, (request, reply) =>
      answer(name, request, reply, { ...dependencies, takePlace, handle }),
    )
  }
}

/** Answers a request, unless there is no place for it. It ends when its client goes. */
async function answer(
  name: OperationName,
  request: FastifyRequest,
  reply: FastifyReply,
  {
    access,
    clock,
    metrics,
    takePlace,
    handle,
  }: QueryDependencies & {
    takePlace: (project: Project) => () => void
    handle: (asked: Asked) => Promise<FastifyReply>
  },
): Promise<FastifyReply> {
  const startedMs = clock.nowMs()
  const gone = new AbortController()
  reply.raw.once('close', () => gone.abort(new ClientGoneError('the client has closed its connection')))
  const project = await access.projectOf(request)
  const given = request.query as Readonly<Record<string, unknown>>
  const parameters = readParameters<Parameters>(operationParameters[name].parameters, given)
  // A response that has closed tells nobody, so what it takes from here on would never be given back.
  gone.signal.throwIfAborted()
  reply.raw.once('close', takePlace(project))
  try {
    return await handle({
      project,
      parameters: parameters as Asked['parameters'],
      request,
      reply,
      signal: gone.signal,
    })
  } finally {
    metrics.observe((clock.nowMs() - startedMs) / 1_000, name)
  }
}
