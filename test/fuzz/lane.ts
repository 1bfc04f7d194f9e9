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
  /** How many requests are written before their answers are read. */
  readonly depth: number
  /** The next request; undefined when there are no more. */
  readonly next: () => FuzzRequest | undefined
}

/** Sends requests over one connection after another, as many over each as they let it live. */
export class Lane {
  readonly #options: LaneOptions
  #connection: Connection | undefined

  constructor(options: LaneOptions) {
    this.#options = options
  }

  async run(): Promise<void> {
    for (;;) {
      const { group, last } = this.#gather()
      if (group.length > 0) await this.#send(group)
      if (last !== undefined) await this.#sendLast(last)
      if (group.length === 0 && last === undefined) break
    }
    this.#connection?.destroy()
  }

  /** Requests that may follow one another, and one that none may follow. */
  #gather(): { group: FuzzRequest[]; last: FuzzRequest | undefined } {
    const group: FuzzRequest[] = []
    while (group.length < this.#options.depth) {
      const request = this.#options.next()
      if (request?.ending !== 'keeps') return { group, last: request }
      group.push(request)
    }
    return { group, last: undefined }
  }

  async #send(group: readonly FuzzRequest[]): Promise<void> {
    const { ledger } = this.#options
    try {
      const connection = await this.#open()
      const heads = group.map(({ isHead }) => isHead)
      const answering = connection.answers(heads, ANSWER_DEADLINE_MS)
      const [answers] = await Promise.all([answering, writeAll(connection, group)])
      if (answers.at(-1)?.headers['connection'] === 'close') connection.destroy()
      for (const [i, request] of group.entries()) this.#judge(request, answers[i])
    } catch (error) {
      for (const request of group) ledger.fail(request, `${String(error)} (one of ${group.length})`)
      this.#connection?.destroy()
    }
    for (const request of group) ledger.done(request)
  }

  async #sendLast(request: FuzzRequest): Promise<void> {
    const { ledger } = this.#options
    try {
      const connection = await this.#open()
      for (const answer of await exchangeLast(connection, request)) this.#judge(request, answer)
    } catch (error) {
      ledger.fail(request, String(error))
    }
    this.#connection?.destroy()
    ledger.done(request)
  }

  #judge(request: FuzzRequest, answer: Answer | undefined): void {
    if (answer !== undefined) this.#options.ledger.answered(request, judge(request, answer))
  }

  async #open(): Promise<Connection> {
    if (this.#connection?.isOpen !== true) this.#connection = await Connection.open(this.#options.port)
    return this.#connection
  }
}

async function exchangeLast(connection: Connection, request: FuzzRequest): Promise<Answer[]> {
  if (request.ending === 'closes') {
    const answering = connection.answers([request.isHead], ANSWER_DEADLINE_MS)
    const [answers] = await Promise.all([answering, writePieces(connection, request)])
    return answers
  }
  await writePieces(connection, request)
  if (request.ending === 'torn') return connection.readToEnd(ANSWER_DEADLINE_MS)
  await connection.flush(ANSWER_DEADLINE_MS)
  return []
}

async function writeAll(connection: Connection, group: readonly FuzzRequest[]): Promise<void> {
  for (const request of group) await writePieces(connection, request)
}

async function writePieces(connection: Connection, { pieces, pauseMs }: FuzzRequest): Promise<void> {
  for (const [i, piece] of pieces.entries()) {
    // Else the kernel would put the pieces together again.
    if (i > 0) await pause(pauseMs)
    connection.write(piece)
  }
}
