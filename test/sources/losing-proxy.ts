import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Forwards requests to an API, and closes the connection instead of some of its 2xx responses. Closes at the end of its scope. */
export class LosingProxy {
  /** The statuses of the API's responses, with ` replayed` for repetitions. */
  readonly statuses: string[] = []
  /** How many responses it has lost. */
  lost = 0
  readonly #apiUrl: string
  /** 1 loses every 2xx response. 3 loses the first, the fourth, and so on. Infinity loses only the first. */
  readonly #every: number
  readonly #server = createServer((incoming, outgoing) => this.#forward(incoming, outgoing))
  #accepted = 0

  private constructor(apiUrl: string, every: number) {
    this.#apiUrl = apiUrl
    this.#every = every
  }

  static async open(apiUrl: string, every: number): Promise<LosingProxy> {
    const proxy = new LosingProxy(apiUrl, every)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = 'GET', url = '/', headers } = incoming
    const forwarded = request(new URL(url, this.#apiUrl), { method, headers }, (response) => {
      if (this.#isLost(response)) {
        response.resume()
        incoming.socket.destroy()
      } else {
        outgoing.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(outgoing)
      }
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  }

  #isLost({ statusCode = 502, headers }: IncomingMessage): boolean {
    this.statuses.push(`${statusCode}${headers['idempotency-replayed'] === 'true' ? ' replayed' : ''}`)
    if (statusCode >= 300 || this.#accepted++ % this.#every !== 0) return false
    this.lost += 1
    return true
  }
}
