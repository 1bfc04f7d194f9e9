import { forwardingCheck, toProblem } from '@sluice/access'
import type { Logger, Readiness } from '@sluice/runtime'
import {
  fastify,
  LogController,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import { randomUUID } from 'node:crypto'
import { METHODS } from 'node:http'
import type { Socket } from 'node:net'
import { ConnectionGuard } from './connections/connection-guard.ts'
import type { ConnectionLimits } from './connections/connection-limits.ts'
import { createHttpServer } from './connections/http-server.ts'
import { ContentDecoder } from './intake/content-encoding.ts'
import { OTHER, type RequestCounts } from './metrics/api-metrics.ts'
import { logsPaths, REQUEST_ID_PATTERN } from './http-contract.ts'
import { Problem, problems, sendProblem } from './problems.ts'
import { Admission, type IntakeDependencies } from './routes/admission.ts'
import { logsRoute } from './routes/logs.ts'
import { protocolRoutes } from './routes/protocols.ts'
import { referenceRoutes } from './routes/reference.ts'
import { requestAttributes } from './traces/request-traces.ts'
import { Turns } from './turns.ts'

export interface AppDependencies extends Omit<IntakeDependencies, 'decoder' | 'turns'> {
  readonly logger: Logger
  readonly readiness: () => Readiness
  readonly trustedProxies: string[] | false
  readonly docsEnabled: boolean
  readonly connectionLimits: ConnectionLimits
}

/** Builds the API without its listening socket. All dependencies are arguments. */
export function buildApp(dependencies: AppDependencies): FastifyInstance {
  const limits = dependencies.connectionLimits
  const { counts } = dependencies
  const guard = new ConnectionGuard(limits, (problem) => counts.rejectedWith(OTHER, OTHER, problem))
  const checkForwarding = forwardingCheck(dependencies.trustedProxies, dependencies.logger)
  const app = fastify({
    // The API logs itself, and its lines name their request. A logger per request would cost more than its authentication.
    logger: false,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: ({ headers }) => {
      const given = headers['x-request-id']
      return typeof given === 'string' && REQUEST_ID_PATTERN.test(given) ? given : randomUUID()
    },
    serverFactory: (handle) => createHttpServer(handle, limits),
    // Shutdown closes idle connections at once. A request in flight gets its response first.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    trustProxy: dependencies.trustedProxies,
    frameworkErrors: (error, request, reply) => {
      void reply.header('x-request-id', request.id)
      guard.onAnswer(request, reply)
      answerError(OTHER, error, request, reply)
    },
    clientErrorHandler: (error, socket) => guard.onClientError(error, socket),
  }) as unknown as FastifyInstance
  function answerError(
    route: string,
    error: FastifyError,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    const problem = toProblem(problems, error, request.id, dependencies.logger)
    // A request with an invalid URL has no admission, not even null.
    if (request.admission instanceof Admission) request.admission.problem = problem.code
    void sendProblem(reply, problem)
    counts.rejectedWith(route, request.method, problem.code, reply.statusCode)
  }

  app.decorateRequest('admission', null)
  countAnswers(app, counts)
  if (dependencies.traces !== undefined) endSpans(app)
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id)
    guard.onRequest(request)
    checkForwarding(request)
    if (!readsBody(request)) guard.onAnswer(request, reply)
    done(rejectHead(request))
  })
  app.setErrorHandler((error: FastifyError, request, reply) => {
    if (request.admission?.isReceived !== true) guard.onAnswer(request, reply)
    answerError(request.is404 ? OTHER : (request.routeOptions.url ?? OTHER), error, request, reply)
    return reply
  })
  // No body is read by Fastify: `receive` reads those of entries, and all others are discarded.
  for (const method of METHODS) app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  app.server.on('connect', (_request, socket: Socket) => guard.onConnect(socket))
  const intake = { ...dependencies, decoder: new ContentDecoder(), turns: new Turns() }
  void app.register(async (scope) => {
    healthRoutes(scope, dependencies.readiness)
    logsRoute(scope, intake)
    referenceRoutes(scope, dependencies.docsEnabled)
  })
  void app.register((scope) => protocolRoutes(scope, intake))
  return app
}

/** The route of entries counts its responses itself: a hook would cost it more than all other counts together. */
function countAnswers(app: FastifyInstance, counts: RequestCounts): void {
  app.addHook('onRoute', (route) => {
    if (logsPaths.includes(route.url) || route.config?.reject !== undefined) return
    route.onSend = ({ method }, { statusCode }, _payload, done) => {
      // Errors are counted with their problems.
      if (statusCode < 400) counts.countOf(route.url, method, statusCode).count += 1
      done()
    }
  })
}

/** `/livez`: the process responds. `/readyz`: it can accept entries. Neither makes a remote call. */
function healthRoutes(app: FastifyInstance, readiness: () => Readiness): void {
  app.get('/livez', () => ({ status: 'ok' }))
  app.get('/readyz', () => {
    const { ready, reasons } = readiness()
    if (!ready) throw new Problem('not_ready', `${reasons.join('; ')}.`)
    return { status: 'ok' }
  })
}

/** Ends the span of a request, even if its connection is closed before the response. */
function endSpans(app: FastifyInstance): void {
  app.addHook('onSend', ({ admission }, { statusCode }, _payload, done) => {
    if (admission !== null && admission.span !== null) {
      const { span, problem } = admission
      span.set({ [requestAttributes.status]: statusCode, [requestAttributes.error]: problem })
      span.end(statusCode >= 500 ? 'error' : undefined)
    }
    done()
  })
}

/** Only the body of a POST is read, and of a PUT if its route takes entries. */
function readsBody({ method, routeOptions }: FastifyRequest): boolean {
  return method === 'POST' || routeOptions.config?.takesPut === true
}

function rejectHead({ headers, is404 }: FastifyRequest): Problem | undefined {
  const encoding = headers['transfer-encoding']
  // Node accepts `gzip, chunked` and does not undo the gzip. A proxy that does would see another body than this API.
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    return new Problem('unsupported_transfer_encoding', undefined, { headers: { connection: 'close' } })
  // Here and not in the not-found handler, which would run after the body was read and validated.
  return is404 ? new Problem('not_found') : undefined
}
