import type { Logger, Readiness } from '@sluice/runtime'
import { fastify, LogController, type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { ConnectionGuard } from './connections/connection-guard.ts'
import type { ConnectionLimits } from './connections/connection-limits.ts'
import { handleError } from './errors.ts'
import { Problem } from './problems.ts'
import { SANE_REQUEST_ID } from './request-id.ts'
import { healthRoutes } from './routes/health.ts'
import { logsPaths, logsRoute, type LogsRouteDependencies } from './routes/logs.ts'
import { referenceRoutes } from './routes/reference.ts'

export interface AppDependencies extends LogsRouteDependencies {
  readonly logger: Logger
  readonly readiness: () => Readiness
  /** From `parseTrustedProxies`. */
  readonly trustedProxies: string[] | false
  /** `connectionLimits` outside of tests. */
  readonly connectionLimits: ConnectionLimits
}

/** The API without its listening socket: everything it needs comes as an argument. */
export function buildApp(dependencies: AppDependencies): FastifyInstance {
  const limits = dependencies.connectionLimits
  const guard = new ConnectionGuard(limits)
  const app = fastify({
    loggerInstance: dependencies.logger,
    logController: new LogController({ disableRequestLogging: true }),
    // What is logged of a request names it; a logger for each costs more than its authentication.
    childLoggerFactory: (logger) => logger,
    requestIdHeader: false,
    genReqId: ({ headers }) => {
      const given = headers['x-request-id']
      return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : randomUUID()
    },
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    connectionTimeout: limits.silenceMs,
    // A connection may carry any number of requests: past such a limit Node drops what was pipelined without a problem
    // document, and to spread connections is the business of the proxy.
    maxRequestsPerSocket: 0,
    http: {
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      maxHeaderSize: limits.headersBytesMax,
      // Never lenient: what a proxy and this parser read differently is how requests are smuggled.
      insecureHTTPParser: false,
      // The host is of no use here, and Node would refuse its absence without a problem document.
      requireHostHeader: false,
    },
    // Idle connections are closed at shutdown; those with a request under way get their answer first.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    trustProxy: dependencies.trustedProxies,
    frameworkErrors: (error, request, reply) => {
      void reply.header('x-request-id', request.id)
      guard.onAnswer(request, reply)
      void handleError(error, request, reply)
    },
    clientErrorHandler: (error, socket) => guard.onClientError(error, socket),
  }) as unknown as FastifyInstance
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id)
    guard.onRequest(request)
    // Only of a POST is the body ever read.
    if (request.method !== 'POST') guard.onAnswer(request, reply)
    // Told here and not by the handler for what is not found, which would run after the body was read and judged.
    if (request.is404) done(notFound(request))
    else done()
  })
  app.setErrorHandler((error: FastifyError, request, reply) => {
    guard.onAnswer(request, reply)
    return handleError(error, request, reply)
  })
  app.removeAllContentTypeParsers()
  // Node would tell the client to go on at once, and refuse other expectations without a problem document. The route says
  // when to go on; others are ignored, as RFC 9110 (10.1.1) allows.
  for (const event of ['checkContinue', 'checkExpectation']) {
    app.server.on(event, (request, response) => app.server.emit('request', request, response))
  }
  app.server.on('connect', (_request, socket: Socket) => guard.onConnect(socket))
  healthRoutes(app, dependencies.readiness)
  logsRoute(app, dependencies)
  referenceRoutes(app)
  return app
}

function notFound({ url }: FastifyRequest): Problem {
  if (logsPaths.includes(url.split('?', 1)[0] ?? '')) {
    return new Problem('method_not_allowed', 'Logs are sent with POST.', { headers: { allow: 'POST' } })
  }
  return new Problem('not_found', 'Logs are sent to /v1/logs.')
}
