import { createServer, type IncomingMessage, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { zstdDecompressSync } from 'node:zlib'

/** The body of a request, which the client compresses if that pays. */
export function bodyOf(request: IncomingMessage, pieces: readonly Buffer[]): string {
  const sent = Buffer.concat(pieces)
  return (request.headers['content-encoding'] === 'zstd' ? zstdDecompressSync(sent) : sent).toString()
}

export interface StoredEntry {
  readonly message: string
  readonly stack?: string
}

/**
 * An API that stores the entries of each idempotency key once. Every fifth answer is lost after the entries are stored, and every
 * seventh request is rejected because of overload.
 */
export class StoringApi {
  readonly stored: StoredEntry[] = []
  requests = 0
  /** Requests whose entries were stored already. */
  repeated = 0
  lostAnswers = 0
  /** Whether the key is rejected. */
  isRejecting = false
  readonly #keys = new Map<string, string>()
  readonly #server: Server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      this.requests += 1
      if (this.isRejecting) {
        response
          .writeHead(401, { 'content-type': 'application/problem+json' })
          .end('{"title":"Unauthorized"}')
        return
      }
      if (this.requests % 7 === 0) {
        response.writeHead(503, { 'content-type': 'application/problem+json', 'retry-after': '0' })
        response.end('{"title":"Overloaded"}')
        return
      }
      const body = bodyOf(request, pieces)
      const { logs } = JSON.parse(body) as { logs: StoredEntry[] }
      this.#store(String(request.headers['idempotency-key']), body, logs)
      if (this.requests % 5 === 0) {
        this.lostAnswers += 1
        response.destroy()
        return
      }
      response.writeHead(202, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ success: true, accepted: logs.length, rejected: 0 }))
    })
  })

  #store(key: string, body: string, logs: readonly StoredEntry[]): void {
    const known = this.#keys.get(key)
    if (known === undefined) {
      this.#keys.set(key, body)
      this.stored.push(...logs)
      return
    }
    if (known !== body) throw new Error('a key is used for two requests')
    this.repeated += 1
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
