import { createServer, type RequestListener, type Server } from 'node:http'
import type { ConnectionLimits } from './connection-limits.ts'
import { type HttpSocket, limitHeads } from './http-socket.ts'
import { RequestTurns } from './request-turns.ts'
import { StaleConnections } from './stale-connections.ts'

/** Makes the HTTP server, which enforces the limits of connections. It does not listen yet. */
export function createHttpServer(handle: RequestListener, limits: ConnectionLimits): Server {
  const turns = new RequestTurns(handle, limits)
  const onRequest: RequestListener = (request, response) => turns.onRequest(request, response)
  const server = createServer(
    {
      requestTimeout: limits.requestMs,
      headersTimeout: limits.headersMs,
      keepAliveTimeout: limits.idleMs,
      connectionsCheckingInterval: limits.deadlineIntervalMs,
      maxHeaderSize: limits.headersBytesMax,
      // Strict: if a proxy and this parser read one request differently, an attacker can smuggle requests.
      insecureHTTPParser: false,
      // The API does not use the host. Node would reject a request without this header, and would not send a problem document.
      requireHostHeader: false,
    },
    onRequest,
  )
  server.setTimeout(limits.silenceMs)
  // Unlimited: at a limit Node drops requests without a problem document, and distributing connections is the task of the proxy.
  server.maxRequestsPerSocket = 0
  // Node would answer `100 Continue` at once, and reject other expectations without a problem document. The route sends 100 when the
  // request is admitted. Other expectations are ignored, as RFC 9110 (10.1.1) allows.
  server.on('checkContinue', onRequest)
  server.on('checkExpectation', onRequest)

  const stale = new StaleConnections(limits, () => performance.now())
  const hasRoom = (socket: HttpSocket): boolean => turns.hasRoom(socket)
  server.on('connection', (socket) => {
    stale.add(socket)
    limitHeads(socket, hasRoom)
  })
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => {
    timer = setInterval(() => stale.check(), limits.staleIntervalMs).unref()
  })
  server.on('close', () => clearInterval(timer))
  return server
}
