import { once } from 'node:events'
import { request as send, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { HttpServer } from './http-server.ts'
import { pause } from './waiting.ts'

const INSERT = /^INSERT INTO logs\b/

/**
 * An HTTP proxy in front of ClickHouse that knows which requests insert log entries. It can delay these requests and withhold the password, and it
 * counts them.
 *
 * It reads a request to its end before it sends it to ClickHouse, and sends it even if the client is gone by then: the insert of a worker that was
 * killed arrives late, as it may in a network.
 */
export class ClickHouseGate {
  insertDelayMs = 0
  delayedInserts = 0
  /** Whether ClickHouse gets no password, and therefore rejects every request. */
  withholdsPassword = false
  /** The inserts of log entries that ClickHouse has acknowledged, in the order in which they ended. */
  readonly acknowledged: { readonly rows: number }[] = []
  readonly #target: URL
  readonly #server: HttpServer

  private constructor(targetUrl: string) {
    this.#target = new URL(targetUrl)
    this.#server = new HttpServer((request, response) => {
      // Without a response, the client sees a lost connection.
      this.#pass(request, response).catch(() => response.destroy())
    })
  }

  static async open(targetUrl: string): Promise<ClickHouseGate> {
    const gate = new ClickHouseGate(targetUrl)
    await gate.#server.listen()
    return gate
  }

  get url(): string {
    return this.#server.url
  }

  close(): Promise<void> {
    return this.#server.close()
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const query = new URL(request.url ?? '', this.#target).searchParams.get('query') ?? ''
    const body = await buffer(request)
    // Workers insert nothing to learn whether they can insert.
    const isInsert = INSERT.test(query) && body.length > 0
    if (isInsert) {
      this.delayedInserts += 1
      await pause(this.insertDelayMs)
      this.delayedInserts -= 1
    }
    const answer = await this.#forward(request, body)
    const text = await buffer(answer)
    const summary = answer.headers['x-clickhouse-summary'] ?? '{}'
    if (isInsert && answer.statusCode === 200)
      this.acknowledged.push({ rows: Number((JSON.parse(String(summary)) as Summary).written_rows ?? 0) })
    response.writeHead(answer.statusCode ?? 502, withoutFraming(answer.headers))
    response.end(text)
  }

  async #forward({ method, url, headers }: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    const { hostname: host, port } = this.#target
    const kept = { ...withoutFraming(headers), 'content-length': body.length }
    if (this.withholdsPassword) delete kept.authorization
    const request = send({ host, port, path: url, method, headers: kept })
    request.end(body)
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    return answer
  }
}

interface Summary {
  readonly written_rows?: string
}

/** The body is sent with its length. */
function withoutFraming(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const framing = new Set(['transfer-encoding', 'content-length', 'connection'])
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !framing.has(name)))
}
