import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { randomUUID } from 'node:crypto'
import { parserProblem } from '../errors.ts'
import { Problem, problemBody, problems } from '../problems.ts'
import type { ConnectionLimits } from './connection-limits.ts'

/** The response that Node writes to a socket at present, as Node's own handling of parser errors finds it. */
type HttpSocket = Socket & { readonly _httpMessage?: ServerResponse | null }

/**
 * Ends connections so that the client learns why, and no later than it has to be.
 *
 * A connection is open → answered early (its request was refused before the body was there; the rest of a small body is
 * read away, and the next request opens it again) or lingering (the last answer is written and the sending side closed;
 * what still comes is read away for `lingerMs`, since closing with unread bytes resets the connection, and a reset takes
 * the answer back) → gone.
 */
export class ConnectionGuard {
  readonly #limits: Pick<ConnectionLimits, 'lingerMs' | 'unreadBytesMax'>
  readonly #answeredEarly = new WeakSet<Socket>()
  readonly #lingering = new WeakSet<Socket>()

  constructor(limits: Pick<ConnectionLimits, 'lingerMs' | 'unreadBytesMax'>) {
    this.#limits = limits
  }

  /** To be told of each request. */
  onRequest({ raw }: FastifyRequest): void {
    this.#answeredEarly.delete(raw.socket)
  }

  /** To be told of each answer that may come before its request's body did. */
  onAnswer({ raw }: FastifyRequest, reply: FastifyReply): void {
    if (raw.complete || !hasBody(raw.headers)) return
    this.#answeredEarly.add(raw.socket)
    if (this.#isWorthReading(raw.headers)) return
    void reply.header('connection', 'close')
    // What Node calls to end a connection after its last answer; its own would not linger.
    raw.socket.destroySoon = () => {
      raw.socket.end()
      this.#linger(raw.socket)
    }
  }

  /** Answers what Node's HTTP parser refused. */
  onClientError(error: NodeJS.ErrnoException, socket: HttpSocket): void {
    if (this.#lingering.has(socket)) return
    if (error.code === 'ECONNRESET' || !socket.writable || this.#answeredEarly.has(socket)) {
      socket.destroy()
      return
    }
    const { _httpMessage: underWay } = socket
    if (underWay?.req.complete === true) {
      // A whole request came before this: it may have been enqueued, and must not be taken for refused.
      socket.pause()
      underWay.once('close', () => this.onClientError(error, socket))
    } else {
      this.#refuse(socket, parserProblem(error))
    }
  }

  /** Answers CONNECT, whose connection Node gives out of hand. */
  onConnect(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    this.#refuse(
      socket,
      new Problem('method_not_allowed', 'This is no proxy. Logs are sent with POST.', {
        headers: { allow: 'POST' },
      }),
    )
  }

  /** Whether the rest of a refused body is so small that reading it costs less than another connection. */
  #isWorthReading({ expect, 'content-length': length }: IncomingHttpHeaders): boolean {
    // A client that waits to be told to continue may send the body or leave it out: nobody knows what comes next.
    return expect === undefined && Number(length ?? Infinity) <= this.#limits.unreadBytesMax
  }

  #refuse(socket: Socket, problem: Problem): void {
    const { status, title } = problems[problem.code]
    const requestId = randomUUID()
    const body = problemBody(problem, requestId)
    const headers = {
      'content-type': 'application/problem+json',
      'x-request-id': requestId,
      ...problem.headers,
      'content-length': Buffer.byteLength(body),
      connection: 'close',
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.end(`HTTP/1.1 ${status} ${title}\r\n${lines.join('')}\r\n${body}`)
    this.#linger(socket)
  }

  /** The connection's sending side is closed. */
  #linger(socket: Socket): void {
    this.#lingering.add(socket)
    socket.resume()
    const timer = setTimeout(() => socket.destroy(), this.#limits.lingerMs)
    socket.once('close', () => clearTimeout(timer))
  }
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
