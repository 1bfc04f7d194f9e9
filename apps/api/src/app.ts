import type { Logger, Readiness } from '@sluice/runtime'
import { fastify, LogController, type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { handleClientError, handleError } from './errors.ts'
import { Problem } from './problems.ts'
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
  /** Sockets whose request was answered before its body was there: what goes wrong in it is not answered again. */
  const answeredEarly = new WeakSet<Socket>()
  const app = fastify({
    loggerInstance: dependencies.logger,
    logController: new LogController({ disableRequestLogging: true }),
    requestIdHeader: false,
    genReqId: ({ headers }) => {
      const given = headers['x-request-id']
      return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : randomUUID()
    },
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    // The host is of no use here, and Node would refuse its absence without a problem document.
    http: { headersTimeout: timeouts.headersMs, requireHostHeader: false },
    // Idle connections are closed at shutdown; those with a request under way get their answer first.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    trustProxy: false,
    frameworkErrors: (error, request, reply) => {
      void reply.header('x-request-id', request.id)
      void handleError(error, request, reply)
    },
    clientErrorHandler: (error, socket) => {
      if (answeredEarly.has(socket)) socket.destroy()
      else handleClientError(error, socket, randomUUID())
    },
  }) as unknown as FastifyInstance
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id)
    answeredEarly.delete(request.raw.socket)
    // Told here and not by the handler for what is not found, which would run after the body was read and judged.
    if (request.is404) done(notFound(request))
    else done()
  })
  app.setErrorHandler((error: FastifyError, request, reply) => {
    if (!request.raw.complete) answeredEarly.add(request.raw.socket)
    return handleError(error, request, reply)
  })
  app.removeAllContentTypeParsers()
  // Node would tell the client to go on at once, and refuse other expectations without a problem document. The route says
  // when to go on; others are ignored, as RFC 9110 (10.1.1) allows.
  for (const event of ['checkContinue', 'checkExpectation']) {
    app.server.on(event, (request, response) => app.server.emit('request', request, response))
  }
  healthRoutes(app, dependencies.readiness)
  logsRoute(app, dependencies)
  return app
}

function notFound({ url }: FastifyRequest): Problem {
  if (logsPaths.includes(url.split('?', 1)[0] ?? '')) {
    return new Problem('method_not_allowed', 'Logs are sent with POST.', { headers: { allow: 'POST' } })
  }
  return new Problem('not_found', 'Logs are sent to /v1/logs.')
}
