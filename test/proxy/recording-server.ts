import { HttpServer } from '@sluice/harness/http-server'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'

/** A request as it arrived. */
export interface RecordedRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly bodyBytes: number
}

/** What a server does with a POST: responds to it, or closes the connection after it has read the body or before that. */
export type Behaviour = 'answer' | 'reset' | 'reset-early'

/** Takes the place of an API, and records what arrives. It always responds to GET. */
export class RecordingServer {
  readonly requests: RecordedRequest[] = []
  behaviour: Behaviour = 'answer'
  readonly #server = new HttpServer((request, response) => void this.#record(request, response), {
    keepAliveTimeout: 65_000,
  })

  static async open(address: string, port: number): Promise<RecordingServer> {
    const recording = new RecordingServer()
    await recording.#server.listen(address, port)
    return recording
  }

  /** How many connections were accepted. */
  get connections(): number {
    return this.#server.connections
  }

  get posts(): readonly RecordedRequest[] {
    return this.requests.filter(({ method }) => method === 'POST')
  }

  close(): Promise<void> {
    return this.#server.close()
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
