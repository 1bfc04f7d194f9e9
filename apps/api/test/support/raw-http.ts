import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A connection on which a test writes what no HTTP client would, and reads what comes back. */
export class RawConnection {
  readonly #socket: Socket
  #received = ''
  #closed = false
  #ended = false
  #error: Error | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (text) => (this.#received += String(text)))
    socket.on('close', () => (this.#closed = true))
    // A server that refuses an upload may reset the connection; what it said before that counts.
    socket.on('error', (error) => (this.#error = error))
    socket.on('end', () => (this.#ended = true))
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    await once(socket, 'connect')
    return new RawConnection(socket)
  }

  write(data: string | Buffer): void {
    this.#socket.write(data)
  }

  /** Resolves when all of it is on its way, or the connection is gone. */
  async writeSlowly(data: Buffer): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#socket.write(data, () => resolve())
    })
  }

  /** Leaves what comes unread, until it is told to read on. */
  pause(): void {
    this.#socket.pause()
  }

  readOn(): void {
    this.#socket.resume()
  }

  /** Says that nothing more will come. */
  end(): void {
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** All that was received so far. */
  get received(): string {
    return this.#received
  }

  /** How many bytes the connection has taken from the test. */
  get bytesTaken(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength
  }

  /** Whether the other side says that nothing more will come, or the connection is gone. */
  get isEnded(): boolean {
    return this.#ended || this.#closed
  }

  /** What the connection broke with. */
  get error(): Error | undefined {
    return this.#error
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /** The final responses so far, those of 1xx left out; one that is not there whole is none yet. */
  get responses(): RawResponse[] {
    return parseResponses(this.#received)
  }
}

function parseResponses(text: string): RawResponse[] {
  const responses: RawResponse[] = []
  for (let rest = text; rest !== '';) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd < 0) break
    const [statusLine = '', ...lines] = rest.slice(0, headEnd).split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    const bodyEnd = headEnd + 4 + Number(headers['content-length'] ?? 0)
    if (rest.length < bodyEnd) break
    const body = rest.slice(headEnd + 4, bodyEnd)
    if (!(status >= 100 && status < 200)) responses.push({ status, headers, body })
    rest = rest.slice(bodyEnd)
  }
  return responses
}
