import type { FastifyInstance } from 'fastify'
import { sendAnswer } from '../answer.ts'
import { readBody } from '../intake/read-body.ts'
import type { AnswerCount } from '../metrics/request-counts.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { protocols } from '../protocols/protocols.ts'
import { admit } from './admission.ts'
import { chargeUnknownLength } from './charges.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'
import { onlyPost } from './only-post.ts'
import { takeRecords } from './take-records.ts'
import { withBody } from './with-body.ts'

interface ProtocolRoute {
  Body: Buffer | undefined
  Params: Readonly<Record<string, string>>
  Querystring: Readonly<Record<string, unknown>>
}

/** The routes of all protocols that have paths of their own. */
export async function protocolRoutes(app: FastifyInstance, dependencies: IntakeDependencies): Promise<void> {
  const { bodies } = dependencies
  // Shippers send many media types for the same content. Only the protocol knows what a body must be.
  app.addContentTypeParser('*', (request, payload, done) => {
    readBody(request, payload, bodies, done)
  })
  for (const protocol of protocols)
    for (const path of protocol.paths) addRoute(app, path, protocol, dependencies)
}

function addRoute(
  app: FastifyInstance,
  path: string,
  protocol: Protocol,
  dependencies: IntakeDependencies,
): void {
  const { counts } = dependencies
  const countOf = (status: number): AnswerCount => counts.countOf(path, 'POST', status)
  onlyPost(app, path)
  app.post<ProtocolRoute>(path, {
    config: { reject: protocol.reject },
    onRequest: (request, reply) =>
      admit(request, reply, dependencies, protocol.authorization(request.headers)),
    errorHandler: chargeUnknownLength,
    handler: async (request, reply) =>
      withBody(request, reply, dependencies, async (body) => {
        const reading = protocol.read(body, request)
        return sendAnswer(reply, await takeRecords(reading, body, request, reply, countOf, dependencies))
      }),
  })
}
