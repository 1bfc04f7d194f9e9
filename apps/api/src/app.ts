import type { Logger, Readiness } from '@sluice/runtime'
import { fastify, type FastifyInstance } from 'fastify'
import { randomUUID } from 'node:crypto'
import { handleClientError, handleError } from './errors.ts'
import { Problem, sendProblem } from './problems.ts'
import { healthRoutes } from './routes/health.ts'
import { logsPaths, logsRoute, type LogsRouteDependencies } from './routes/logs.ts'

export interface AppDependencies extends LogsRouteDependencies {
  readonly logger: Logger
  readonly readiness: () => Readiness
}

/** How long clients may take, ms. */
const timeouts = {
  /** A whole request; 5 MiB in 30 s is 1.4 Mbit/s. */
  requestMs: 30_000,
  /** Its headers alone. */
  headersMs: 10_000,
  /** An idle connection. Longer than the 60 s of common proxies, so that the proxy closes first. */
  keepAliveMs: 65_000,
} as const

/** A caller's request id is kept when it is short and printable, so that it can be searched for. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/

/** The API without its listening socket: everything it needs comes as an argument. */
export function buildApp(dependencies: AppDependencies): FastifyInstance {
  const app = fastify({
    loggerInstance: dependencies.logger,
    disableRequestLogging: true,
    requestIdHeader: false,
    genReqId: ({ headers }) => {
      const given = headers['x-request-id']
      return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : randomUUID()
    },
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    http: { headersTimeout: timeouts.headersMs },
    // Idle connections are closed at shutdown; those with a request under way get their answer first.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    trustProxy: false,
    frameworkErrors: (error, request, reply) => {
      void reply.header('x-request-id', request.id)
      void handleError(error, request, reply)
    },
    clientErrorHandler: (error, socket) => handleClientError(error, socket, randomUUID()),
  }) as unknown as FastifyInstance
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id)
    done()
  })
  app.setErrorHandler(handleError)
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    if (logsPaths.includes(path)) {
      const headers = { allow: 'POST' }
      return sendProblem(reply, new Problem('method_not_allowed', 'Logs are sent with POST.', { headers }))
    }
    return sendProblem(reply, new Problem('not_found', 'Logs are sent to /v1/logs.'))
  })
  app.removeAllContentTypeParsers()
  healthRoutes(app, dependencies.readiness)
  logsRoute(app, dependencies)
  return app
}
