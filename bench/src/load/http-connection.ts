import { connect, type Socket } from 'node:net'
import type { PreparedRequest } from './request-pool.ts'

/** Answers are a few hundred bytes; one that is larger comes in several reads. */
const READ_BUFFER_BYTES = 16_384
const CONNECT_DEADLINE_MS = 5_000
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i

export interface ConnectionEvents {
  /** @param answer head and body, to be read at once: the memory is used again */
  readonly onAnswer: (connection: HttpConnection, status: number, answer: Buffer) => void
  /** The connection is gone, or what came is not understood. Called once. */
  readonly onFailure: (error: Error) => void
}

/**
 * One HTTP/1.1 connection that is kept alive. It reads only what a load generator needs: the status, and the length, to
 * know when the answer is whole.
 *
 * Idle → (`send`) awaiting the answer → (`onAnswer`) idle → … → closed.
 */
export class HttpConnection {
  /** When the request that is under way was due, on the clock of `performance.now()`. */
  dueMs = 0
  /** How many entries it has. */
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
        // One buffer for all reads of the connection, where sockets otherwise allocate one for each.
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
      this.#fail(new Error('an answer without a Content-Length'))
    } else if (head === undefined || bytes.length < headBytes + 4 + Number(length)) {
      // The buffer is about to be read into again, so what is kept is a copy.
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
