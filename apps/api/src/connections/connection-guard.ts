import { rawResponse } from '@sluice/access'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { parserProblem, Problem, type ProblemCode } from '../problems.ts'
import { Turns } from '../turns.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import { currentResponse, type HttpSocket, stopReading } from './http-server.ts'

/**
 * Closes connections as early as possible, but so that the client can still read the reason.
 *
 * Open → answered early → open, or open → lingering → closed:
 *
 * - Answered early: a request was rejected before its body had arrived. The rest of a small body is read and discarded, and
 *   the next request makes the connection open again.
 * - Lingering: the last response is written, and the sending side is closed. Bytes that still arrive are read and discarded for
 *   `lingerMs`. Closing a connection with unread bytes would reset it, and a reset can destroy the response. One connection is read in
 *   each turn of the event loop, and once: libuv would read up to 2 MB of each in every turn.
 */
export class ConnectionGuard {
  readonly #limits: ConnectionLimits
  readonly #onRejected: (problem: ProblemCode) => void
  readonly #answeredEarly = new WeakSet<Socket>()
  readonly #lingering = new WeakSet<Socket>()
  readonly #reads = Turns.unshared()
  /** Their next request is broken, and earlier ones have no response yet. */
  readonly #broken = new WeakSet<Socket>()

  /** @param onRejected called for each response to something that is not a valid request */
  constructor(limits: ConnectionLimits, onRejected: (problem: ProblemCode) => void) {
    this.#limits = limits
    this.#onRejected = onRejected
  }

  onRequest({ raw }: FastifyRequest): void {
    this.#answeredEarly.delete(raw.socket)
  }

  /** To be called for each response that may be sent before the body of its request has arrived. */
  onAnswer({ raw }: FastifyRequest, reply: FastifyReply): void {
    if (raw.complete || !hasBody(raw.headers)) return
    this.#answeredEarly.add(raw.socket)
    const { expect, 'content-length': length } = raw.headers
    // After `Expect: 100-continue` a client may send the body or omit it: the next bytes cannot be interpreted. Otherwise, to read the rest
    // of a small body costs less than a new connection.
    if (expect === undefined && Number(length ?? Infinity) <= this.#limits.unreadBytesMax) return
    void reply.header('connection', 'close')
    // Node calls this method to close a connection after its last response. Node's version does not linger.
    raw.socket.destroySoon = () => {
      raw.socket.end()
      this.#linger(raw.socket)
    }
  }

  onClientError(error: NodeJS.ErrnoException, socket: HttpSocket): void {
    if (this.#lingering.has(socket)) return
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    if (this.#answeredEarly.has(socket)) {
      socket.end()
      this.#linger(socket)
      return
    }
    // Node parses what it reads after an error, and reports the error again.
    if (this.#broken.has(socket)) stopReading(socket)
    else this.#rejectAfterAnswers(socket, parserProblem(error))
  }

  /** Complete requests may have come before the broken one. They may be enqueued, so their clients must not read a rejection. */
  #rejectAfterAnswers(socket: HttpSocket, problem: Problem): void {
    const response = currentResponse(socket)
    if (response?.req.complete === true) {
      this.#broken.add(socket)
      stopReading(socket)
      response.once('close', () => {
        if (socket.writable) this.#rejectAfterAnswers(socket, problem)
      })
    } else {
      this.#reject(socket, problem)
    }
  }

  /** Responds to CONNECT. Node passes its socket to this handler and does not manage it any more. */
  onConnect(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    const detail = 'This server is not a proxy. Send logs with POST.'
    this.#reject(socket, new Problem('method_not_allowed', detail, { headers: { allow: 'POST' } }))
  }

  #reject(socket: Socket, problem: Problem): void {
    this.#onRejected(problem.code)
    socket.end(rawResponse(problem))
    this.#linger(socket)
  }

  /** Reads and discards bytes for `lingerMs`, then closes. The sending side must be closed already. */
  #linger(socket: Socket): void {
    this.#lingering.add(socket)
    socket.on('data', () => {
      stopReading(socket)
      void this.#reads.next().then(() => socket.resume())
    })
    socket.resume()
    const timer = setTimeout(() => socket.destroy(), this.#limits.lingerMs)
    socket.once('close', () => clearTimeout(timer))
  }
}

/** Whether a request has a body, even if it has not arrived. */
export function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
