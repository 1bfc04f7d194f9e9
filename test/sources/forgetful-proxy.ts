import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Forwards requests to an API, and loses the answer to the first one: its client gets a 503, although the API has accepted it. */
export class ForgetfulProxy {
  readonly #server: Server
  /** The statuses of the API's answers, with ` replayed` for repetitions. */
  readonly answers: string[] = []

  private constructor(apiUrl: string) {
    this.#server = createServer((incoming, outgoing) => this.#forward(apiUrl, incoming, outgoing))
  }

  static async start(apiUrl: string): Promise<ForgetfulProxy> {
    const proxy = new ForgetfulProxy(apiUrl)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #forward(apiUrl: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = 'GET', url = '/', headers } = incoming
    const forwarded = request(new URL(url, apiUrl), { method, headers }, (answer) => {
      const { statusCode = 502, headers: answered } = answer
      const isFirst = this.answers.length === 0
      this.answers.push(`${statusCode}${answered['idempotency-replayed'] === 'true' ? ' replayed' : ''}`)
      if (isFirst) {
        answer.resume()
        outgoing.writeHead(503, { 'retry-after': '1' }).end()
      } else {
        outgoing.writeHead(statusCode, answered)
        answer.pipe(outgoing)
      }
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  }
}
