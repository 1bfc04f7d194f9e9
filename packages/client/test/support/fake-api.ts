import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'

export interface Received {
  readonly headers: IncomingHttpHeaders
  readonly url: string | undefined
  /** After decompression. */
  readonly body: string
  readonly logs: readonly Record<string, unknown>[]
}

export type Responder = (response: ServerResponse, received: Received) => void

const json = (response: ServerResponse, status: number, body: unknown, headers = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export const accept: Responder = (response, { logs }) =>
  json(response, 202, { success: true, accepted: logs.length, rejected: 0 })

export const problem =
  (status: number, code: string, headers: Readonly<Record<string, string>> = {}): Responder =>
  (response) =>
    json(
      response,
      status,
      { type: 'about:blank', title: 'Problem', status, detail: `Detail of ${code}.`, code },
      headers,
    )

/** Closes the connection after the request was read. */
export const loseAnswer: Responder = (response) => void response.socket?.destroy()

export const neverAnswer: Responder = () => undefined

/** An API that sends the prepared responses, one per request, and then accepts everything. */
export class FakeApi {
  readonly received: Received[] = []
  /** The first body of each idempotency key that was accepted. */
  readonly stored = new Map<string, readonly Record<string, unknown>[]>()
  responders: Responder[] = []
  /** For requests without a prepared response. */
  defaultResponder: Responder = accept
  readonly #server: Server
  #port = 0

  constructor() {
    this.#server = createServer((request, response) => {
      const pieces: Buffer[] = []
      request.on('data', (piece: Buffer) => pieces.push(piece))
      request.on('end', () => {
        const body = decode(Buffer.concat(pieces), request.headers['content-encoding']).toString()
        const { logs } = JSON.parse(body) as Pick<Received, 'logs'>
        const received = { headers: request.headers, url: request.url, body, logs }
        this.received.push(received)
        const respond = this.responders.shift() ?? this.defaultResponder
        respond(response, received)
        const key = String(request.headers['idempotency-key'])
        if (response.statusCode === 202 && response.writableEnded && !this.stored.has(key))
          this.stored.set(key, logs)
      })
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** The messages of all requests, including those that were not accepted. */
  get messages(): unknown[] {
    return this.received.flatMap(({ logs }) => logs.map(({ message }) => message))
  }

  get storedMessages(): unknown[] {
    return [...this.stored.values()].flatMap((logs) => logs.map(({ message }) => message))
  }

  async start(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

function decode(bytes: Buffer, encoding: string | undefined): Buffer {
  if (encoding === 'gzip') return gunzipSync(bytes)
  return encoding === 'zstd' ? zstdDecompressSync(bytes) : bytes
}
