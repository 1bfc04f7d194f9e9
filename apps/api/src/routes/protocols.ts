import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import { METHODS } from 'node:http'
import { type Answer, sendAnswer } from '../answer.ts'
import { datadogLogs } from '../protocols/datadog.ts'
import { elasticsearchBulk } from '../protocols/elasticsearch/bulk.ts'
import { lokiPush } from '../protocols/loki/push.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { splunkHec } from '../protocols/splunk-hec.ts'
import { Problem, problems } from '../problems.ts'
import type { IntakeDependencies } from './admission.ts'
import { receive } from './receive.ts'
import { takeRecords } from './take-records.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the bodies of PUT requests are read. */
    takesPut?: boolean
  }
}

interface ProtocolRoute {
  Params: Readonly<Record<string, string>>
  Querystring: Readonly<Record<string, unknown>>
}

const GET = ['GET', 'HEAD'] as const

const protocols: readonly Protocol[] = [elasticsearchBulk, lokiPush, ...splunkHec, datadogLogs]

export async function protocolRoutes(app: FastifyInstance, dependencies: IntakeDependencies): Promise<void> {
  for (const protocol of protocols) {
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
    handler: async (request, reply) => {
      protocol.check?.(request)
      const answers = countOf(request.method)
      // Shippers send many media types for the same content. Only the protocol knows what a body must be.
      const taken = { authorization: protocol.authorization(request.headers), encoding }
      return receive(request, reply, taken, dependencies, async (body, admission) =>
        takeRecords(protocol.read(body, request), body, admission, answers),
      )
    },
  })
}

function addAnswer(
  app: FastifyInstance,
  path: string,
  methods: readonly string[],
  answer: Answer,
  { authorization, reject }: Protocol,
  { authenticator, counts }: IntakeDependencies,
  needsKey = false,
): void {
  app.route({
    method: [...methods],
    url: path,
    config: { reject },
    handler: async (request, reply) => {
      if (needsKey) await authenticator.authenticate(authorization(request.headers), request)
      counts.countOf(path, request.method, answer.status).count += 1
      return sendAnswer(reply, answer)
    },
  })
}

/** Rejects all other methods of a path with 405. Fastify would respond with 404, and knows only some of the methods. */
export function rejectOtherMethods(
  app: FastifyInstance,
  url: string,
  allowed: readonly string[],
  config: FastifyContextConfig = {},
): void {
  const { method_not_allowed: standard } = problems
  const detail = allowed.includes('POST') ? standard.detail : `Use ${allowed.join(' or ')}.`
  app.route({
    method: METHODS.filter((method) => !allowed.includes(method)),
    url,
    exposeHeadRoute: false,
    config,
    handler: () => {
      throw new Problem('method_not_allowed', detail, { headers: { allow: allowed.join(', ') } })
    },
  })
}
