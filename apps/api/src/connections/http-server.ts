import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import { Turns } from '../turns.ts'
import type { ConnectionLimits } from './connection-limits.ts'

/** Makes the HTTP server, which enforces the limits of connections. It does not listen yet. */
export function createHttpServer(handle: RequestListener, limits: ConnectionLimits): Server {
  const { onRequest, hasRoom } = requestTurns(handle, limits)
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
  // Node would send `100 Continue` at once, and reject other expectations without a problem document. The route sends 100 when the
  // request is admitted. Other expectations are ignored, as RFC 9110 (10.1.1) allows.
  server.on('checkContinue', onRequest)
  server.on('checkExpectation', onRequest)

  const stale = new StaleConnections(limits.staleMs, () => performance.now())
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

interface Queue {
  requests: number
  readonly keepPaused: () => void
  readonly close: () => void
}

/**
 * Passes one request of a connection at a time to the handler: the next one when the operating system has taken the whole response to
 * the one before. A client that does not read its responses costs the memory of one response.
 *
 * Node parses all heads of a read, up to 64 KiB, before the first one gets its response. A connection is
 *
 * - open: it has at most one request, which is handled at once;
 * - waiting: requests wait for the response to the first one, and nothing is read. When none waits, it is open again.
 */
function requestTurns(handle: RequestListener, limits: ConnectionLimits) {
  const { waitingRequestsMax, waitingRequestsPerConnectionMax } = limits
  /** The connections with waiting requests. */
  const queues = new Map<Socket, Queue>()
  let requests = 0

  function open(socket: Socket): Queue {
    const queue: Queue = {
      requests: 0,
      // Node resumes the socket whenever a body is read. The bodies of waiting requests have arrived, except the body of the last one.
      keepPaused: () => stopReading(socket),
      close: () => close(socket, queue),
    }
    queues.set(socket, queue)
    stopReading(socket)
    socket.on('resume', queue.keepPaused)
    socket.on('close', queue.close)
    return queue
  }

  function take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const queue = queues.get(socket)
    if (queue === undefined) return
    queue.requests -= 1
    requests -= 1
    if (queue.requests === 0) {
      close(socket, queue)
      socket.resume()
    }
    handle(request, response)
  }

  function close(socket: Socket, queue: Queue): void {
    requests -= queue.requests
    queues.delete(socket)
    socket.off('resume', queue.keepPaused)
    socket.off('close', queue.close)
  }

  /** Whether another request of the connection can be handled or may wait. */
  function hasRoom(socket: HttpSocket): boolean {
    if (requests === 0 || currentResponse(socket) === undefined) return true
    const waiting = queues.get(socket)?.requests ?? 0
    return waiting < waitingRequestsPerConnectionMax && requests < waitingRequestsMax
  }

  /** To be called for each request, in the order of arrival. */
  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    // Node assigns the socket to the response whose turn it is.
    if (response.socket !== null) return handle(request, response)
    const { socket } = request
    const queue = queues.get(socket) ?? open(socket)
    queue.requests += 1
    requests += 1
    // Emitted when Node assigns the socket. By then the response before has left this process.
    response.once('socket', () => take(request, response))
  }

  return { hasRoom, onRequest }
}

/**
 * Closes connections on which no byte of a response was written for `staleMs`, and whose next request is not being handled. Their client
 * either sends something other than a request, or does not read the response.
 */
export class StaleConnections {
  readonly #staleMs: number
  readonly #monotonicMs: () => number
  readonly #connections = new Map<HttpSocket, { bytesWritten: number; sinceMs: number }>()
  readonly #turns = Turns.unshared()

  constructor(staleMs: number, monotonicMs: () => number) {
    this.#staleMs = staleMs
    this.#monotonicMs = monotonicMs
  }

  /** To be called for each new connection. */
  add(socket: HttpSocket): void {
    this.#connections.set(socket, { bytesWritten: 0, sinceMs: this.#monotonicMs() })
    // Prepended, because `on` and `once` would make an array of two listeners where Node also makes the arrays of each request. If hundreds
    // of connections open together, V8 learns that arrays from there live long, and allocates all of them in the old generation. Each then
    // keeps its request until the next major collection: scavenges took three times as long, a tenth of the CPU time of a request.
    socket.prependListener('close', () => this.#connections.delete(socket))
  }

  /** To be called at an interval. */
  check(): void {
    const nowMs = this.#monotonicMs()
    for (const [socket, progress] of this.#connections) {
      const { bytesWritten, writableLength } = socket
      const isHandled = currentResponse(socket) !== undefined && writableLength === 0
      if (isHandled || bytesWritten !== progress.bytesWritten) {
        progress.bytesWritten = bytesWritten
        progress.sinceMs = nowMs
      } else if (nowMs - progress.sinceMs >= this.#staleMs) {
        this.#connections.delete(socket)
        // To close thousands in one turn of the event loop would take half a second.
        void this.#turns.next().then(() => socket.destroy())
      }
    }
  }
}

/** A connection of Node's HTTP server, with the parts that Node does not document. */
export interface HttpSocket extends Socket {
  /** Node's handler of parser errors uses it as well. */
  readonly _httpMessage?: ServerResponse | null
  /** `onIncoming` is called when the head of a request is complete. After a negative result the parser fails at once. */
  readonly parser?: { onIncoming: (request: IncomingMessage, keepAlive: boolean) => number } | null
}

/** The response that Node is writing to the socket. Undefined between requests. */
export const currentResponse = ({ _httpMessage: response }: HttpSocket): ServerResponse | undefined =>
  response ?? undefined

/**
 * Stops reading from the connection until Node resumes it. If the stream is paused while it is being resumed, Node starts reading
 * although it stays paused, and `pause` alone has no effect. Node stops reading in its listener of the event.
 */
export function stopReading(socket: Socket): void {
  socket.pause()
  socket.emit('pause')
}

/**
 * Makes the parser fail at a head, before Node makes a response for it, unless `hasRoom` returns true. The code of the error is
 * `HPE_CB_HEADERS_COMPLETE`.
 */
function limitHeads(socket: HttpSocket, hasRoom: (socket: HttpSocket) => boolean): void {
  const { parser } = socket
  if (parser === undefined || parser === null) return
  const { onIncoming } = parser
  parser.onIncoming = (request, keepAlive) => (hasRoom(socket) ? onIncoming(request, keepAlive) : -1)
}
