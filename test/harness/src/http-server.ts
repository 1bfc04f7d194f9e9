import { once } from 'node:events'
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An HTTP server on a loopback address, which takes the place of another one in a test. */
export class HttpServer {
  connections = 0
  readonly #server: Server

  constructor(listener: RequestListener, options: Pick<ServerOptions, 'keepAliveTimeout'> = {}) {
    this.#server = createServer(options, listener)
    this.#server.on('connection', () => (this.connections += 1))
  }

  async listen(address = '127.0.0.1', port = 0): Promise<void> {
    this.#server.listen(port, address)
    await once(this.#server, 'listening')
  }

  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo
    return `http://${address}:${port}`
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }
}
