import { HttpConnection, type HttpResponse, pause, within } from '@sluice/harness'
import type { FuzzRequest } from './fuzz-request.ts'
import type { Judge } from './judge.ts'
import type { Ledger } from './report.ts'

/** The API itself gives up on Redis within 2 s. The rest is headroom for a busy machine. */
const ANSWER_DEADLINE_MS = 20_000

/**
 * Sends requests over one connection until it closes, then over the next. Requests are not pipelined: a request behind one that closes the connection
 * may be stored without a response, and its rows could not be counted.
 *
 * @param next the next request, or undefined at the end
 */
export async function runLane(
  port: number,
  ledger: Ledger,
  judge: Judge,
  next: () => FuzzRequest | undefined,
): Promise<void> {
  let connection: HttpConnection | undefined
  for (let request = next(); request !== undefined; request = next()) {
    try {
      if (connection?.isOpen !== true) {
        connection?.destroy()
        connection = await HttpConnection.open(port)
      }
      const answers = await exchange(connection, request)
      for (const answer of answers) ledger.answered(request, judge(request, answer))
      if (request.ending !== 'keeps' || answers.at(-1)?.headers['connection'] === 'close')
        connection.destroy()
    } catch (error) {
      ledger.fail(request, String(error))
      connection?.destroy()
    }
    ledger.done(request)
  }
  connection?.destroy()
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
