import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { HttpServer } from '@sluice/harness/http-server'

interface Received {
  readonly headers: IncomingHttpHeaders
  readonly url: string | undefined
  /** After decompression. */
  readonly body: string
  readonly logs: readonly Record<string, unknown>[]
}

export type Responder = (response: ServerResponse, received: Received) => void

const json = (response: ServerResponse, status: number, body: object, headers: object = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export const accept: Responder = (response, { logs }) =>
  json(response, 202, { success: true, accepted: logs.length, rejected: 0 })

export const problem =
  (status: number, code: string, headers: object = {}): Responder =>
  (response) =>
    json(response, status, { title: 'Problem', detail: `Detail of ${code}.`, code }, headers)

/** Closes the connection after the request was read. */
export const loseAnswer: Responder = (response) => void response.socket?.destroy()

export const neverAnswer: Responder = () => undefined

/** An API that accepts everything, unless a test sets another responder. */
export class FakeApi {
  readonly received: Received[] = []
  /** The first body of each idempotency key that was accepted. */
  readonly stored = new Map<string, readonly Record<string, unknown>[]>()
  responder: Responder = accept
  url = ''
  readonly #server = new HttpServer((request, response) => void this.#receive(request, response))

  /** The messages of all requests that were accepted. */
  get storedMessages(): unknown[] {
    return [...this.stored.values()].flatMap((logs) => logs.map(({ message }) => message))
  }

  async start(): Promise<void> {
    await this.#server.listen()
    this.url = this.#server.url
  }

  async stop(): Promise<void> {
    await this.#server.close()
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { headers, url } = request
    const body = decode(await buffer(request), headers['content-encoding']).toString()
    const { logs } = JSON.parse(body) as Pick<Received, 'logs'>
    this.received.push({ headers, url, body, logs })
    this.responder(response, { headers, url, body, logs })
    const key = String(headers['idempotency-key'])
    if (response.statusCode === 202 && response.writableEnded && !this.stored.has(key))
      this.stored.set(key, logs)
  }
}

function decode(bytes: Buffer, encoding: string | undefined): Buffer {
  if (encoding === 'gzip') return gunzipSync(bytes)
  return encoding === 'zstd' ? zstdDecompressSync(bytes) : bytes
}
