import { connect, type Socket } from 'node:net'

/** Answers are a few hundred bytes. A larger answer takes several reads. */
const READ_BUFFER_BYTES = 16_384
const CONNECT_DEADLINE_MS = 5_000
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i

/** A request as it goes over the wire: head and body. */
export interface PreparedRequest {
  readonly bytes: Buffer
  readonly entries: number
}

export interface ConnectionEvents {
  /** @param answer head and body. Read it synchronously: the memory is reused */
  readonly onAnswer: (connection: HttpConnection, status: number, answer: Buffer) => void
  /** The connection was closed, or the answer could not be parsed. Called once. */
  readonly onFailure: (error: Error) => void
}

/**
 * One HTTP/1.1 keep-alive connection with one request in flight. It parses only what a load generator needs: the status,
 * and the Content-Length, to detect the end of the answer.
 *
 * Idle → (`send`) awaiting the answer → (`onAnswer`) idle → … → closed.
 */
export class HttpConnection {
  /** When the request in flight was due, on the clock of `performance.now()`. */
  dueMs = 0
  /** The number of entries of the request in flight. */
  entries = 0
  readonly #events: ConnectionEvents
  readonly #socket: Socket
  #incomplete: Buffer | undefined
  #awaiting = false
  #closed = false

  private constructor(address: { host: string; port: number }, events: ConnectionEvents) {
    this.#events = events
    this.#socket = connect({
      ...address,
      noDelay: true,
      onread: {
        // One buffer for all reads of the connection. By default a socket allocates one per read.
        buffer: Buffer.allocUnsafe(READ_BUFFER_BYTES),
        callback: (bytes, buffer) => {
          this.#read(Buffer.from(buffer.buffer, buffer.byteOffset, bytes))
          return true
        },
      },
    })
  }

  static open(url: URL, events: ConnectionEvents): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const connection = new HttpConnection({ host: url.hostname, port: Number(url.port) }, events)
      const socket = connection.#socket
      socket.setTimeout(CONNECT_DEADLINE_MS, () => socket.destroy(new Error('connecting took too long')))
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.setTimeout(0)
        socket.off('error', reject)
        socket.on('error', (error) => connection.#fail(error))
        socket.once('close', () => connection.#fail(new Error('the connection was closed')))
        resolve(connection)
      })
    })
  }

  get awaiting(): boolean {
    return this.#awaiting
  }

  send({ bytes, entries }: PreparedRequest, dueMs: number): void {
    this.#awaiting = true
    this.dueMs = dueMs
    this.entries = entries
    this.#socket.write(bytes)
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #read(data: Buffer): void {
    const bytes = this.#incomplete === undefined ? data : Buffer.concat([this.#incomplete, data])
    const headBytes = bytes.indexOf('\r\n\r\n')
    const head = headBytes === -1 ? undefined : bytes.toString('latin1', 0, headBytes)
    const length = head === undefined ? undefined : CONTENT_LENGTH.exec(head)?.[1]
    if (head !== undefined && length === undefined) {
      this.#fail(new Error('an answer has no Content-Length'))
    } else if (head === undefined || bytes.length < headBytes + 4 + Number(length)) {
      // A copy, because the next read overwrites the buffer.
      this.#incomplete = Buffer.from(bytes)
    } else {
      this.#incomplete = undefined
      this.#awaiting = false
      this.#events.onAnswer(this, Number(head.slice(9, 12)), bytes)
    }
  }

  #fail(error: Error): void {
    if (this.#closed) return
    this.close()
    this.#events.onFailure(error)
  }
}
