import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'

/** A request as it arrived. */
export interface RecordedRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly bodyBytes: number
}

/** What a server does with a POST: answers it, or closes the connection after it has read the body or before that. */
export type Behaviour = 'answer' | 'reset' | 'reset-early'

/** Takes the place of an API, and records what arrives. It answers GET always. */
export class RecordingServer {
  readonly requests: RecordedRequest[] = []
  behaviour: Behaviour = 'answer'
  /** How many connections were accepted. */
  connections = 0
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', () => (this.connections += 1))
    server.on('request', (request, response) => void this.#record(request, response))
  }

  static async open(address: string, port: number): Promise<RecordingServer> {
    const server = createServer({ keepAliveTimeout: 65_000 })
    const recording = new RecordingServer(server)
    server.listen(port, address)
    await once(server, 'listening')
    return recording
  }

  get posts(): readonly RecordedRequest[] {
    return this.requests.filter(({ method }) => method === 'POST')
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  async #record(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = request
    const recorded = { method, headers, bodyBytes: 0 }
    this.requests.push(recorded)
    const behaviour = method === 'POST' ? this.behaviour : 'answer'
    if (behaviour !== 'reset-early')
      for await (const part of request as AsyncIterable<Buffer>) recorded.bodyBytes += part.length
    if (behaviour === 'answer') response.writeHead(method === 'POST' ? 202 : 200).end()
    else request.socket.resetAndDestroy()
  }
}
