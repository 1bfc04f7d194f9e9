import { connect, type Socket } from 'node:net'

const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i

/** A request as it goes over the wire: head and body. */
export interface PreparedRequest {
  readonly bytes: Buffer
  readonly entries: number
}

export interface ConnectionEvents {
  /** @param response head and body */
  readonly onResponse: (connection: HttpConnection, status: number, response: Buffer) => void
  /** The connection was closed, or the response could not be parsed. */
  readonly onFailure: (error: Error) => void
}

/**
 * One HTTP/1.1 keep-alive connection with one request in flight. It parses only the status and the Content-Length: the client of
 * `@sluice/harness` takes twice the CPU time per request, which the load generator would take from the system that it measures.
 */
export class HttpConnection {
  /** When the request in flight was due, on the clock of `performance.now()`. */
  dueMs = 0
  /** The number of entries of the request in flight. */
  entries = 0
  awaiting = false
  readonly #events: ConnectionEvents
  readonly #socket: Socket
  #incomplete: Buffer | undefined

  constructor(url: URL, events: ConnectionEvents) {
    this.#events = events
    this.#socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
    this.#socket.on('data', (data: Buffer) => this.#read(data))
    this.#socket.once('error', (error) => events.onFailure(error))
    this.#socket.once('close', () => events.onFailure(new Error('the connection was closed')))
  }

  send({ bytes, entries }: PreparedRequest, dueMs: number): void {
    this.awaiting = true
    this.dueMs = dueMs
    this.entries = entries
    this.#socket.write(bytes)
  }

  close(): void {
    this.#socket.removeAllListeners('close').destroy()
  }

  #read(data: Buffer): void {
    const bytes = this.#incomplete === undefined ? data : Buffer.concat([this.#incomplete, data])
    const headBytes = bytes.indexOf('\r\n\r\n')
    const head = bytes.toString('latin1', 0, Math.max(0, headBytes))
    const length = CONTENT_LENGTH.exec(head)?.[1]
    if (headBytes === -1 || bytes.length < headBytes + 4 + Number(length)) {
      this.#incomplete = bytes
      return
    }
    if (length === undefined) return this.#events.onFailure(new Error('a response has no Content-Length'))
    this.#incomplete = undefined
    this.awaiting = false
    this.#events.onResponse(this, Number(head.slice(9, 12)), bytes)
  }
}
