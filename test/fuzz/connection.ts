import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** An answer, whole. */
export interface Answer {
  readonly status: number
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The connection ended, or stayed silent, before all answers were there; or what came is no HTTP. */
export class ConnectionError extends Error {
  override name = 'ConnectionError'
}

interface Exchange {
  /** For each answer that is awaited, whether it is to HEAD. */
  readonly heads: readonly boolean[]
  readonly answers: Answer[]
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** An answer takes some milliseconds; one that takes longer counts as lost. */
const LAST_ANSWERS_MS = 10
const CONNECT_DEADLINE_MS = 10_000
/** No answer is longer: one that is has lost its end. */
const ANSWER_BYTES_MAX = 1_000_000

/**
 * A connection that writes any bytes, and reads answers as strictly as HTTP allows.
 *
 * Idle → (`exchange`) awaiting answers → idle → … → (`readToEnd`, `destroy`, the server) closed.
 */
export class Connection {
  readonly #socket: Socket
  #unread: Buffer = Buffer.alloc(0)
  #exchange: Exchange | undefined
  #closedBy: Error | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (data: Buffer) => this.#read(data))
    socket.on('error', (error) => (this.#closedBy ??= error))
    // A server that says that it has no more to say gives no more answers.
    for (const event of ['end', 'close']) socket.on(event, () => this.#close())
  }

  static async open(port: number): Promise<Connection> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    try {
      await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_DEADLINE_MS) })
    } catch (error) {
      socket.destroy()
      throw error
    }
    return new Connection(socket)
  }

  get isOpen(): boolean {
    return this.#closedBy === undefined && !this.#socket.destroyed
  }

  write(bytes: Buffer): void {
    if (this.#socket.writable) this.#socket.write(bytes)
  }

  /** Resolves when what was written so far is with the kernel, or cannot be. */
  async flush(deadlineMs: number): Promise<void> {
    if (!this.#socket.writableNeedDrain) return
    await once(this.#socket, 'drain', { signal: AbortSignal.timeout(deadlineMs) }).catch(() => undefined)
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /**
   * The answers to what was written or is about to be, in their order.
   *
   * @param heads for each answer, whether it is to HEAD
   * @throws ConnectionError when they are not all there by the deadline
   */
  async answers(heads: readonly boolean[], deadlineMs: number): Promise<Answer[]> {
    const answers = await this.#await(heads, deadlineMs)
    if (this.#unread.length > 0)
      throw new ConnectionError(`more came than was asked for: ${this.#quoteUnread()}`)
    return answers
  }

  /**
   * Says after a moment that nothing more comes, and gives all answers that come until the server ends the connection.
   *
   * @throws ConnectionError when it has not by the deadline, or what came is no HTTP
   */
  async readToEnd(deadlineMs: number): Promise<Answer[]> {
    // Node answers nothing any more to whoever has said that.
    const timer = setTimeout(() => this.#socket.end(), LAST_ANSWERS_MS)
    const answers: Answer[] = []
    try {
      for (;;) answers.push(...(await this.#await([false], deadlineMs)))
    } catch (error) {
      if (!(error instanceof ClosedError)) throw error
      if (this.#unread.length > 0)
        throw new ConnectionError(`half an answer came: ${this.#quoteUnread()}`, { cause: error })
      return answers
    } finally {
      clearTimeout(timer)
    }
  }

  async #await(heads: readonly boolean[], deadlineMs: number): Promise<Answer[]> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const exchange: Exchange = { heads, answers: [], resolve, reject }
    this.#exchange = exchange
    const timer = setTimeout(
      () => reject(new ConnectionError(`no answer within ${deadlineMs} ms`)),
      deadlineMs,
    )
    try {
      this.#advance()
      if (this.#closedBy !== undefined) this.#close()
      await promise
      return exchange.answers
    } finally {
      clearTimeout(timer)
      this.#exchange = undefined
    }
  }

  #read(data: Buffer): void {
    this.#unread = this.#unread.length === 0 ? data : Buffer.concat([this.#unread, data])
    this.#advance()
  }

  #advance(): void {
    const exchange = this.#exchange
    if (exchange === undefined) return
    try {
      while (exchange.answers.length < exchange.heads.length) {
        const parsed = parseAnswer(this.#unread, exchange.heads[exchange.answers.length] ?? false)
        if (parsed === undefined) return
        this.#unread = this.#unread.subarray(parsed.bytes)
        if (parsed.answer.status >= 200) exchange.answers.push(parsed.answer)
      }
      exchange.resolve()
    } catch (error) {
      exchange.reject(error as Error)
    }
  }

  #close(): void {
    this.#closedBy ??= new Error('the server ended it')
    this.#socket.destroy()
    this.#exchange?.reject(new ClosedError(`the connection was closed: ${this.#closedBy.message}`))
  }

  #quoteUnread(): string {
    return JSON.stringify(this.#unread.toString('latin1', 0, 200))
  }
}

class ClosedError extends ConnectionError {
  override name = 'ClosedError'
}

const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) [ -~]*$/
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t -~\x80-\xff]*)$/

/** The first answer of what came, and how many bytes it is; undefined while it is not there whole. */
function parseAnswer(bytes: Buffer, isHead: boolean): { answer: Answer; bytes: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) {
    if (bytes.length > ANSWER_BYTES_MAX) throw new ConnectionError('an answer without an end of its head')
    return undefined
  }
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const status = Number(STATUS_LINE.exec(statusLine)?.[1])
  if (!(status >= 100))
    throw new ConnectionError(`not a status line: ${JSON.stringify(statusLine.slice(0, 100))}`)
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? []
    if (name === undefined || value === undefined)
      throw new ConnectionError(`not a header: ${JSON.stringify(line)}`)
    headers[name.toLowerCase()] = value
  }
  const bodyBytes = bodyLength(status, headers, isHead)
  const end = headEnd + 4 + bodyBytes
  if (bytes.length < end) return undefined
  return { answer: { status, headers, body: bytes.toString('utf8', headEnd + 4, end) }, bytes: end }
}

function bodyLength(status: number, headers: Readonly<Record<string, string>>, isHead: boolean): number {
  if (isHead || status < 200 || status === 204 || status === 304) return 0
  const length = headers['content-length'] ?? ''
  if (!/^\d{1,6}$/.test(length)) throw new ConnectionError(`an answer ${status} of the length "${length}"`)
  return Number(length)
}
