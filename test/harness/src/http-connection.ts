import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type HttpResponse, MalformedResponseError, parseResponse } from './http-response.ts'
import { within } from './waiting.ts'

const CONNECT_DEADLINE_MS = 10_000
/** A last response arrives within milliseconds. If it takes longer, it counts as lost. */
const LAST_RESPONSE_MS = 10

/**
 * A client connection that writes any bytes and never sends anything twice.
 *
 * `received` and `responses` show everything that arrived. `readResponses` and `readToEnd` also consume it, for connections that live long.
 */
export class HttpConnection {
  readonly #socket: Socket
  #unread: Buffer = Buffer.alloc(0)
  /** Resolves when something arrives, or the connection ends. */
  #change = Promise.withResolvers<void>()
  #isEnded = false
  #isClosed = false
  #error: Error | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    const changed = (): void => {
      this.#change.resolve()
      this.#change = Promise.withResolvers()
    }
    socket.on('data', (data: Buffer) => {
      this.#unread = this.#unread.length === 0 ? data : Buffer.concat([this.#unread, data])
      changed()
    })
    // A server that rejects an upload may reset the connection. Its earlier responses are still valid.
    socket.on('error', (error) => (this.#error ??= error))
    socket.on('end', () => {
      this.#isEnded = true
      changed()
    })
    socket.on('close', () => {
      this.#isClosed = true
      changed()
    })
  }

  static async open(port: number): Promise<HttpConnection> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    try {
      await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_DEADLINE_MS) })
    } catch (error) {
      socket.destroy()
      throw error
    }
    return new HttpConnection(socket)
  }

  write(data: string | Buffer): void {
    if (this.#socket.writable) this.#socket.write(data)
  }

  /** Resolves when the kernel has everything that was written, or the connection is closed. */
  async flushed(): Promise<void> {
    if (!this.#socket.writable) return
    await new Promise<void>((resolve) => void this.#socket.write('', () => resolve()))
  }

  /** Stops reading, until `resume`. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Closes the sending direction. */
  end(): void {
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Everything that arrived and was not consumed. */
  get received(): string {
    return this.#unread.toString('latin1')
  }

  /** The complete final responses in `received`, without status 1xx. None of them may be to a HEAD request. */
  get responses(): HttpResponse[] {
    const responses: HttpResponse[] = []
    for (let rest = this.#unread; ;) {
      const parsed = parseResponse(rest, false)
      if (parsed === undefined) return responses
      if (parsed.response.status >= 200) responses.push(parsed.response)
      rest = rest.subarray(parsed.bytes)
    }
  }

  /** How many of the written bytes the kernel has accepted. */
  get bytesTaken(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength
  }

  /** Whether a request can be sent, and its response read. */
  get isOpen(): boolean {
    return !this.isEnded && !this.#socket.destroyed
  }

  /** Whether the server has closed its sending direction, or the connection is closed. */
  get isEnded(): boolean {
    return this.#isEnded || this.#isClosed
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** What broke the connection. */
  get error(): Error | undefined {
    return this.#error
  }

  /**
   * Consumes the responses to requests that are already written or about to be, in order.
   *
   * @param heads for each response, whether it is to a HEAD request
   * @throws when the connection closes or stays silent before, when more arrives, or with a MalformedResponseError
   */
  async readResponses(heads: readonly boolean[], deadlineMs: number): Promise<HttpResponse[]> {
    const responses: HttpResponse[] = []
    for (const isHead of heads) responses.push(await this.#read(isHead, deadlineMs))
    if (this.#unread.length > 0) throw new Error(`more arrived than was requested: ${this.#quoteUnread()}`)
    return responses
  }

  /**
   * Closes the sending direction after a moment, and consumes all responses until the server closes the connection.
   *
   * @throws when the server does not close it by the deadline, or with a MalformedResponseError
   */
  async readToEnd(deadlineMs: number): Promise<HttpResponse[]> {
    // Node stops responding to a client that has closed its sending direction.
    const timer = setTimeout(() => this.#socket.end(), LAST_RESPONSE_MS)
    const responses: HttpResponse[] = []
    try {
      while (!this.isEnded || this.#unread.length > 0) responses.push(await this.#read(false, deadlineMs))
    } catch (error) {
      if (!this.isEnded || error instanceof MalformedResponseError) throw error
      if (this.#unread.length > 0)
        throw new MalformedResponseError(`an incomplete response: ${this.#quoteUnread()}`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
    return responses
  }

  /** Consumes the next final response. */
  async #read(isHead: boolean, deadlineMs: number): Promise<HttpResponse> {
    const giveUpAtMs = performance.now() + deadlineMs
    for (;;) {
      const parsed = parseResponse(this.#unread, isHead)
      if (parsed !== undefined) {
        this.#unread = this.#unread.subarray(parsed.bytes)
        if (parsed.response.status >= 200) return parsed.response
      } else if (this.isEnded) {
        const cause = this.#error
        const reason = cause === undefined ? ' by the server' : `: ${cause.message}`
        throw new Error(`the connection was closed${reason}`, { cause })
      } else {
        await within(giveUpAtMs - performance.now(), 'the response', this.#change.promise)
      }
    }
  }

  #quoteUnread(): string {
    return JSON.stringify(this.#unread.toString('latin1', 0, 200))
  }
}
