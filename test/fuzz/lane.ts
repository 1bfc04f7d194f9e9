import { HttpConnection, type HttpResponse, pause, within } from '@sluice/harness'
import type { FuzzRequest } from './fuzz-request.ts'
import type { Judge } from './judge.ts'
import type { Ledger } from './report.ts'

/** The API itself gives up on Redis within 2 s. The rest is headroom for a busy machine. */
const ANSWER_DEADLINE_MS = 20_000

export interface LaneOptions {
  readonly port: number
  readonly ledger: Ledger
  readonly judge: Judge
  /** The next request, or undefined at the end. */
  readonly next: () => FuzzRequest | undefined
}

/**
 * Sends requests over one connection until it closes, then over the next. Requests are not pipelined: a request behind one
 * that closes the connection may be stored without a response, and its rows could not be counted.
 */
export class Lane {
  readonly #options: LaneOptions
  #connection: HttpConnection | undefined

  constructor(options: LaneOptions) {
    this.#options = options
  }

  async run(): Promise<void> {
    const { next } = this.#options
    for (let request = next(); request !== undefined; request = next()) await this.#send(request)
    this.#connection?.destroy()
  }

  async #send(request: FuzzRequest): Promise<void> {
    const { ledger, judge } = this.#options
    let keeps = false
    try {
      const connection = await this.#open()
      const answers = await exchange(connection, request)
      keeps = request.ending === 'keeps' && answers.at(-1)?.headers['connection'] !== 'close'
      for (const answer of answers) ledger.answered(request, judge.judge(request, answer))
    } catch (error) {
      ledger.fail(request, String(error))
    }
    if (!keeps) this.#connection?.destroy()
    ledger.done(request)
  }

  async #open(): Promise<HttpConnection> {
    if (this.#connection?.isOpen === true) return this.#connection
    this.#connection?.destroy()
    this.#connection = await HttpConnection.open(this.#options.port)
    return this.#connection
  }
}

async function exchange(connection: HttpConnection, request: FuzzRequest): Promise<HttpResponse[]> {
  if (request.ending === 'keeps' || request.ending === 'closes') {
    const answering = connection.readResponses([request.isHead], ANSWER_DEADLINE_MS)
    const [answers] = await Promise.all([answering, writePieces(connection, request)])
    return answers
  }
  await writePieces(connection, request)
  if (request.ending === 'torn') return connection.readToEnd(ANSWER_DEADLINE_MS)
  await within(ANSWER_DEADLINE_MS, 'writing', connection.flushed())
  return []
}

async function writePieces(connection: HttpConnection, { pieces, pauseMs }: FuzzRequest): Promise<void> {
  for (const [i, piece] of pieces.entries()) {
    // Without a pause, the kernel would merge the pieces.
    if (i > 0) await pause(pauseMs)
    connection.write(piece)
  }
}
