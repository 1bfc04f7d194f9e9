import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Answer, sendAnswer } from '../answer.ts'
import { readBody } from '../intake/read-body.ts'
import { shipperOperation } from '../openapi/operations.ts'
import type { FixedAnswer, Protocol } from '../protocols/protocol.ts'
import { protocols } from './served-protocols.ts'
import { admit } from './admission.ts'
import { chargeUnknownLength } from './charges.ts'
import type { IntakeDependencies } from './intake-dependencies.ts'
import { rejectOtherMethods } from './other-methods.ts'
import { takeRecords } from './take-records.ts'
import { withBody } from './with-body.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the bodies of PUT requests are read. */
    takesPut?: boolean
  }
}

interface ProtocolRoute {
  Body: Buffer | undefined
  Params: Readonly<Record<string, string>>
  Querystring: Readonly<Record<string, unknown>>
}

/** The routes of all protocols that have paths of their own. */
export async function protocolRoutes(
  app: FastifyInstance,
  dependencies: IntakeDependencies,
  served: readonly Protocol[] = protocols,
): Promise<void> {
  const { bodies } = dependencies
  // Shippers send many media types for the same content. Only the protocol knows what a body must be.
  app.addContentTypeParser('*', (request, payload, done) => {
    readBody(request, payload, bodies, done)
  })
  for (const protocol of served) {
    for (const path of protocol.paths) addRoute(app, path, protocol, dependencies)
    for (const fixed of protocol.fixedAnswers ?? []) {
      for (const path of fixed.paths) addFixedAnswer(app, path, fixed, protocol, dependencies)
    }
  }
}

function addRoute(
  app: FastifyInstance,
  path: string,
  protocol: Protocol,
  dependencies: IntakeDependencies,
): void {
  const { counts } = dependencies
  const { reject, methods, encoding, optionsAnswer } = protocol
  const countOf = (method: string) => (status: number) => counts.countOf(path, method, status)
  rejectOtherMethods(app, path, optionsAnswer === undefined ? methods : [...methods, 'OPTIONS'], { reject })
  if (optionsAnswer !== undefined) addAnswer(app, path, ['OPTIONS'], optionsAnswer, protocol, dependencies)
  app.route<ProtocolRoute>({
    method: [...methods],
    url: path,
    config: { reject, takesPut: methods.includes('PUT'), operation: shipperOperation(path) },
    onRequest: async (request, reply) => {
      protocol.check?.(request)
      await admit(request, reply, dependencies, protocol.authorization(request.headers), encoding?.name)
    },
    errorHandler: chargeUnknownLength,
    handler: async (request, reply) => {
      const answer = await withBody(
        request,
        reply,
        dependencies,
        (body) => {
          const reading = protocol.read(body, request)
          return takeRecords(reading, body, request, reply, countOf(request.method), dependencies)
        },
        encoding,
      )
      // The answer may wait for its client for long. The body is not held any more.
      request.body = undefined
      return sendAnswer(reply, answer)
    },
  })
}

function addFixedAnswer(
  app: FastifyInstance,
  path: string,
  { answer, needsKey }: FixedAnswer,
  protocol: Protocol,
  dependencies: IntakeDependencies,
): void {
  const { authenticator } = dependencies
  const { authorization, reject } = protocol
  async function authenticate(request: FastifyRequest): Promise<void> {
    await authenticator.authenticate(authorization(request.headers), request)
  }
  rejectOtherMethods(app, path, ['GET', 'HEAD'], { reject })
  addAnswer(app, path, ['GET', 'HEAD'], answer, protocol, dependencies, needsKey ? [authenticate] : [])
}

/** Answers before the body is read: Fastify reads that of an OPTIONS request, and no handler would release it. */
function addAnswer(
  app: FastifyInstance,
  path: string,
  methods: string[],
  answer: Answer,
  { reject }: Protocol,
  { counts }: IntakeDependencies,
  checks: readonly ((request: FastifyRequest) => Promise<void>)[] = [],
): void {
  async function respond({ method }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    counts.countOf(path, method, answer.status).count += 1
    return sendAnswer(reply, answer)
  }
  app.route({
    method: methods,
    url: path,
    config: { reject },
    onRequest: [...checks, respond],
    handler: respond,
  })
}
