import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { METHODS } from 'node:http'
import { type Answer, sendAnswer } from '../answer.ts'
import { datadogLogs } from '../protocols/datadog.ts'
import { elasticsearchBulk } from '../protocols/elasticsearch/bulk.ts'
import { lokiPush } from '../protocols/loki/push.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { splunkHec } from '../protocols/splunk-hec.ts'
import { Problem, problems } from '../problems.ts'
import { admit, type IntakeDependencies, rejectWithLimits } from './admission.ts'
import { readBytes, withBody } from './receive-body.ts'
import { takeRecords } from './take-records.ts'

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

const GET = ['GET', 'HEAD'] as const

/** The protocols that have paths of their own. */
const protocols: readonly Protocol[] = [elasticsearchBulk, lokiPush, ...splunkHec, datadogLogs]

/** The routes of all protocols that have paths of their own. */
export async function protocolRoutes(
  app: FastifyInstance,
  dependencies: IntakeDependencies,
  served: readonly Protocol[] = protocols,
): Promise<void> {
  // Shippers send many media types for the same content. Only the protocol knows what a body must be.
  app.addContentTypeParser('*', readBytes)
  for (const protocol of served) {
    for (const path of protocol.paths) addRoute(app, path, protocol, dependencies)
    for (const fixed of protocol.fixedAnswers ?? []) {
      for (const path of fixed.paths) {
        rejectOtherMethods(app, path, GET, { reject: protocol.reject })
        addAnswer(app, path, GET, fixed.answer, protocol, dependencies, fixed.needsKey)
      }
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
    config: { reject, takesPut: methods.includes('PUT') },
    onRequest: async (request, reply) => {
      protocol.check?.(request)
      await admit(request, reply, dependencies, protocol.authorization(request.headers), encoding?.name)
    },
    errorHandler: rejectWithLimits,
    handler: async (request, reply) => {
      const answers = countOf(request.method)
      const answer = await withBody(
        request,
        dependencies,
        async (body, admission) =>
          takeRecords(protocol.read(body, request), body, admission, answers, dependencies),
        encoding,
      )
      // The response may wait for its client for long. The body is not held any more.
      request.body = undefined
      return sendAnswer(reply, answer)
    },
  })
}

/** Responds before the body is read: Fastify reads the body of an OPTIONS request, and no handler would release it. */
function addAnswer(
  app: FastifyInstance,
  path: string,
  methods: readonly string[],
  answer: Answer,
  { authorization, reject }: Protocol,
  { authenticator, counts }: IntakeDependencies,
  needsKey = false,
): void {
  async function respond(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    if (needsKey) await authenticator.authenticate(authorization(request.headers), request)
    counts.countOf(path, request.method, answer.status).count += 1
    return sendAnswer(reply, answer)
  }
  app.route({ method: [...methods], url: path, config: { reject }, onRequest: respond, handler: respond })
}

/**
 * Rejects all other methods of a path with 405. Fastify would respond with 404, and knows only some of the methods.
 *
 * @param allowed the methods that the path has
 */
export function rejectOtherMethods(
  app: FastifyInstance,
  url: string,
  allowed: readonly string[],
  config: FastifyContextConfig = {},
): void {
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  const { method_not_allowed: standard } = problems
  const detail = allowed.includes('POST') ? standard.detail : `Use ${allowed.join(' or ')}.`
  const methodNotAllowed = (): Problem =>
    new Problem('method_not_allowed', detail, { headers: { allow: allowed.join(', ') } })
  app.route({
    method: METHODS.filter((method) => !allowed.includes(method)),
    url,
    exposeHeadRoute: false,
    config,
    onRequest: (_request, _reply, done) => done(methodNotAllowed()),
    handler: () => {
      throw methodNotAllowed()
    },
  })
}
