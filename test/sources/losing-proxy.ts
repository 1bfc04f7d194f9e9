import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** Forwards requests to an API, and loses some of its answers: it closes the connection instead. */
export class LosingProxy {
  /** How many answers it has lost. */
  lost = 0
  readonly #apiUrl: string
  readonly #losesEvery: number
  readonly #server: Server
  #requests = 0

  private constructor(apiUrl: string, losesEvery: number) {
    this.#apiUrl = apiUrl
    this.#losesEvery = losesEvery
    this.#server = createServer((request, response) => void this.#forward(request, response))
  }

  /** @param losesEvery 3 loses the first answer, the fourth, and so on */
  static async open(apiUrl: string, losesEvery: number): Promise<LosingProxy> {
    const proxy = new LosingProxy(apiUrl, losesEvery)
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

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host: _host, connection: _connection, 'content-length': _length, ...headers } = request.headers
    const body = await buffer(request)
    const answer = await fetch(`${this.#apiUrl}${request.url ?? ''}`, {
      method: request.method ?? 'POST',
      headers: headers as Record<string, string>,
      body: new Uint8Array(body),
    })
    const text = await answer.text()
    this.#requests += 1
    if (answer.ok && this.#requests % this.#losesEvery === 1) {
      this.lost += 1
      request.socket.destroy()
      return
    }
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' }).end(text)
  }
}
