import { clientErrors, problemBody, rawResponse } from '@sluice/access'
import type { Logger, Readiness } from '@sluice/runtime'
import { fastify, type FastifyError, type FastifyInstance, type FastifyReply, LogController } from 'fastify'
import { randomUUID } from 'node:crypto'
import { refuseForeignChange } from './access.ts'
import { type ExplorerFiles, explorerRoutes } from './explorer.ts'
import { openapiDocument } from './openapi.ts'
import { type OperatorDependencies, operatorRoutes } from './operator-routes.ts'
import { Problem, queryProblem } from './problems.ts'
import type { QueryMetrics } from './query-metrics.ts'
import { ClientGoneError, type QueryDependencies, queryRoutes } from './routes.ts'

const httpLimits = {
  /** A whole request. Only that of a sign-in has a body, which is small. */
  requestMs: 10_000,
  bodyBytesMax: 4 * 1024,
  /** A query may have 4,096 characters, which are percent-encoded. */
  headersBytesMax: 64 * 1024,
  /** A client that takes nothing for this long, after the queries of an answer, is disconnected: it has a place, and memory. */
  stalledMs: 60_000,
  queriesMax: 3,
  /** Longer than the 60 s of common proxies, so that the proxy closes first. */
  idleMs: 65_000,
} as const

export interface AppDependencies extends QueryDependencies, OperatorDependencies {
  readonly metrics: QueryMetrics
  readonly explorer: ExplorerFiles
  readonly logger: Logger
  readonly readiness: () => Readiness
  readonly trustedProxies: string[] | false
}

/** Builds the query API and the explorer without their listening socket. All dependencies are arguments. */
export function buildApp(dependencies: AppDependencies): FastifyInstance {
  const { logger, readiness, metrics, access, tails } = dependencies
  const app = fastify({
    logger: false,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    exposeHeadRoutes: false,
    trustProxy: dependencies.trustedProxies,
    bodyLimit: httpLimits.bodyBytesMax,
    requestTimeout: httpLimits.requestMs,
    connectionTimeout: httpLimits.queriesMax * dependencies.timeMaxMs + httpLimits.stalledMs,
    keepAliveTimeout: httpLimits.idleMs,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    http: { maxHeaderSize: httpLimits.headersBytesMax, headersTimeout: httpLimits.requestMs },
    clientErrorHandler: ({ code }, socket) => {
      const problem = new Problem(...(clientErrors[code] ?? (['bad_request'] as const)))
      if (socket.writable) socket.end(rawResponse(problem), () => socket.destroy())
      else socket.destroy()
    },
    frameworkErrors: (error, request, reply) => void sendError(error, request.id, reply),
  }) as unknown as FastifyInstance

  function sendError(error: FastifyError, requestId: string, reply: FastifyReply): FastifyReply {
    if (error instanceof ClientGoneError || reply.raw.destroyed) return reply.hijack()
    const problem = queryProblem(error, requestId, logger)
    metrics.reject(problem.code)
    return reply
      .code(problem.status)
      .headers(problem.headers)
      .header('x-request-id', requestId)
      .type('application/problem+json')
      .send(problemBody(problem, requestId))
  }

  app.setErrorHandler((error: FastifyError, request, reply) => sendError(error, request.id, reply))
  app.setNotFoundHandler(() => {
    throw new Problem('not_found')
  })
  app.addHook('onRequest', (request, reply, done) => {
    // Browsers must not guess another media type, nor keep answers, nor send the page's address to other sites.
    void reply.headers({
      'x-request-id': request.id,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    done()
  })
  app.addHook('onRequest', refuseForeignChange)
  app.addHook('onResponse', ({ routeOptions }, { statusCode }, done) => {
    metrics.count(routeOptions.url ?? 'other', statusCode)
    done()
  })
  // They would never end by themselves.
  app.addHook('preClose', (done) => {
    tails.close()
    done()
  })
  app.get('/livez', () => ({ status: 'ok' }))
  app.get('/readyz', () => {
    const { ready, reasons } = readiness()
    if (!ready) throw new Problem('not_ready', `${reasons.join('; ')}.`)
    return { status: 'ok' }
  })
  const document = openapiDocument()
  app.get('/v1/query/openapi.json', () => document)
  access.addRoutes(app)
  queryRoutes(app, dependencies)
  explorerRoutes(app, dependencies.explorer)
  // Its hook is only for its own routes.
  void app.register(async (scope) => operatorRoutes(scope, dependencies))
  return app
}
