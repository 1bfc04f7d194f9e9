import { pause } from '../chaos/pause.ts'
import { type Answer, Connection } from './connection.ts'
import type { FuzzRequest } from './fuzz-request.ts'
import { judge } from './judge.ts'
import type { Ledger } from './ledger.ts'

/** How long an answer may take: the API itself gives up on Redis within 2 s, the rest is for a busy machine. */
const ANSWER_DEADLINE_MS = 20_000

export interface LaneOptions {
  readonly port: number
  readonly ledger: Ledger
  /** The next request; undefined when there are no more. */
  readonly next: () => FuzzRequest | undefined
}

/**
 * Sends requests over one connection after another, as many over each as they let it live. Each waits for the answer to
 * the one before: what is written behind a request that ends its connection may be stored without an answer, so that its
 * rows could not be counted.
 */
export class Lane {
  readonly #options: LaneOptions
  #connection: Connection | undefined

  constructor(options: LaneOptions) {
    this.#options = options
  }

  async run(): Promise<void> {
    const { next } = this.#options
    for (let request = next(); request !== undefined; request = next()) await this.#send(request)
    this.#connection?.destroy()
  }

  async #send(request: FuzzRequest): Promise<void> {
    const { ledger } = this.#options
    let keeps = false
    try {
      const connection = await this.#open()
      const answers = await exchange(connection, request)
      keeps = request.ending === 'keeps' && answers.at(-1)?.headers['connection'] !== 'close'
      for (const answer of answers) ledger.answered(request, judge(request, answer))
    } catch (error) {
      ledger.fail(request, String(error))
    }
    if (!keeps) this.#connection?.destroy()
    ledger.done(request)
  }

  async #open(): Promise<Connection> {
    if (this.#connection?.isOpen !== true) this.#connection = await Connection.open(this.#options.port)
    return this.#connection
  }
}

async function exchange(connection: Connection, request: FuzzRequest): Promise<Answer[]> {
  if (request.ending === 'keeps' || request.ending === 'closes') {
    const answering = connection.answers([request.isHead], ANSWER_DEADLINE_MS)
    const [answers] = await Promise.all([answering, writePieces(connection, request)])
    return answers
  }
  await writePieces(connection, request)
  if (request.ending === 'torn') return connection.readToEnd(ANSWER_DEADLINE_MS)
  await connection.flush(ANSWER_DEADLINE_MS)
  return []
}

async function writePieces(connection: Connection, { pieces, pauseMs }: FuzzRequest): Promise<void> {
  for (const [i, piece] of pieces.entries()) {
    // Else the kernel would put the pieces together again.
    if (i > 0) await pause(pauseMs)
    connection.write(piece)
  }
}
