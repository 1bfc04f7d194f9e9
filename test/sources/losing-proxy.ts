import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Losses {
  /** 1 loses every answer of acceptance. 3 loses the first, the fourth, and so on. Infinity loses only the first. */
  readonly every: number
  /** What the client gets: nothing, because its connection is closed, or an answer that asks it to retry. */
  readonly instead: 'close' | 503
}

/** Forwards requests to an API, and loses some of the answers that say that a request was accepted. */
export class LosingProxy {
  /** The statuses of the API's answers, with ` replayed` for repetitions. */
  readonly answers: string[] = []
  /** How many answers it has lost. */
  lost = 0
  readonly #apiUrl: string
  readonly #losses: Losses
  readonly #server: Server
  #accepted = 0

  private constructor(apiUrl: string, losses: Losses) {
    this.#apiUrl = apiUrl
    this.#losses = losses
    this.#server = createServer((incoming, outgoing) => this.#forward(incoming, outgoing))
  }

  static async open(apiUrl: string, losses: Losses): Promise<LosingProxy> {
    const proxy = new LosingProxy(apiUrl, losses)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = 'GET', url = '/', headers } = incoming
    const forwarded = request(new URL(url, this.#apiUrl), { method, headers }, (answer) => {
      if (this.#isLost(answer)) {
        answer.resume()
        if (this.#losses.instead === 'close') incoming.socket.destroy()
        else outgoing.writeHead(this.#losses.instead, { 'retry-after': '1' }).end()
      } else {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      }
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  }

  #isLost({ statusCode = 502, headers }: IncomingMessage): boolean {
    this.answers.push(`${statusCode}${headers['idempotency-replayed'] === 'true' ? ' replayed' : ''}`)
    if (statusCode >= 300 || this.#accepted++ % this.#losses.every !== 0) return false
    this.lost += 1
    return true
  }
}
