import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionLimits } from './connection-limits.ts'
import { currentResponse, type HttpSocket, stopReading } from './http-socket.ts'

type TurnLimits = Pick<ConnectionLimits, 'waitingRequestsMax' | 'waitingRequestsPerConnectionMax'>

interface Queue {
  requests: number
  readonly keepPaused: () => void
  readonly close: () => void
}

/**
 * Passes one request of a connection at a time to the handler: the next one when the operating system has taken the whole answer to
 * the one before. A client that does not read its answers costs the memory of one answer.
 *
 * Node parses all heads of a read, up to 64 KiB, before the first one is answered. A connection is
 *
 * - open: it has at most one request, which is handled at once;
 * - waiting: requests wait for the answer to the first one, and nothing is read. When none waits, it is open again.
 */
export class RequestTurns {
  readonly #handle: RequestListener
  readonly #limits: TurnLimits
  /** The connections with waiting requests. */
  readonly #queues = new Map<Socket, Queue>()
  #requests = 0

  constructor(handle: RequestListener, limits: TurnLimits) {
    this.#handle = handle
    this.#limits = limits
  }

  /** Whether another request of the connection can be handled or may wait. */
  hasRoom(socket: HttpSocket): boolean {
    if (this.#requests === 0 || currentResponse(socket) === undefined) return true
    const { waitingRequestsMax, waitingRequestsPerConnectionMax } = this.#limits
    const requests = this.#queues.get(socket)?.requests ?? 0
    return requests < waitingRequestsPerConnectionMax && this.#requests < waitingRequestsMax
  }

  /** To be called for each request, in the order of arrival. */
  onRequest(request: IncomingMessage, response: ServerResponse): void {
    // Node assigns the socket to the response whose turn it is.
    if (response.socket === null) this.#wait(request, response)
    else this.#handle(request, response)
  }

  #wait(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const queue = this.#queues.get(socket) ?? this.#open(socket)
    queue.requests += 1
    this.#requests += 1
    // Emitted when Node assigns the socket. By then the answer before has left this process.
    response.once('socket', () => this.#take(request, response))
  }

  #open(socket: Socket): Queue {
    const queue: Queue = {
      requests: 0,
      // Node resumes the socket whenever a body is read. The bodies of waiting requests have arrived, except that of the last one.
      keepPaused: () => stopReading(socket),
      close: () => this.#close(socket, queue),
    }
    this.#queues.set(socket, queue)
    stopReading(socket)
    socket.on('resume', queue.keepPaused)
    socket.on('close', queue.close)
    return queue
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const queue = this.#queues.get(socket)
    if (queue === undefined) return
    queue.requests -= 1
    this.#requests -= 1
    if (queue.requests === 0) {
      this.#close(socket, queue)
      socket.resume()
    }
    this.#handle(request, response)
  }

  #close(socket: Socket, queue: Queue): void {
    this.#requests -= queue.requests
    this.#queues.delete(socket)
    socket.off('resume', queue.keepPaused)
    socket.off('close', queue.close)
  }
}
