import { once } from 'node:events'
import { request as send, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { HttpServer } from './http-server.ts'
import { pause } from './waiting.ts'

/** An insert of log entries that ClickHouse has acknowledged. */
export interface AcknowledgedInsert {
  readonly rows: number
  /** On the monotonic clock. */
  readonly atMs: number
}

const INSERT = /^INSERT INTO logs\b/
const PASSWORD_HEADER = 'authorization'

/**
 * An HTTP proxy in front of ClickHouse that knows which requests insert log entries. It can delay these requests and withhold the
 * password, and it counts them.
 *
 * It reads a request to its end before it sends it to ClickHouse, and sends it even if the client is gone by then: the insert of a worker
 * that was killed arrives late, as it may in a network.
 */
export class ClickHouseGate {
  /** How long each insert is delayed before ClickHouse gets it. Other requests are not delayed. */
  insertDelayMs = 0
  /** Whether ClickHouse gets no password, and therefore rejects every request. */
  withholdsPassword = false
  /** In the order in which they ended. */
  readonly acknowledged: AcknowledgedInsert[] = []
  readonly #target: URL
  readonly #server: HttpServer
  #delayed = 0

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

  /** Inserts that are being delayed now. */
  get delayedInserts(): number {
    return this.#delayed
  }

  /** Closes all connections. */
  close(): Promise<void> {
    return this.#server.close()
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const query = new URL(request.url ?? '', this.#target).searchParams.get('query') ?? ''
    const body = await buffer(request)
    // Workers insert nothing to learn whether they can insert.
    const isInsert = INSERT.test(query) && body.length > 0
    if (isInsert) await this.#delay()
    const answer = await this.#forward(request, body)
    const text = await buffer(answer)
    if (isInsert && answer.statusCode === 200)
      this.acknowledged.push({ rows: writtenRows(answer), atMs: performance.now() })
    response.writeHead(answer.statusCode ?? 502, withoutFraming(answer.headers))
    response.end(text)
  }

  async #delay(): Promise<void> {
    this.#delayed += 1
    await pause(this.insertDelayMs)
    this.#delayed -= 1
  }

  async #forward({ method, url, headers }: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    const { [PASSWORD_HEADER]: password, ...others } = withoutFraming(headers)
    const { hostname: host, port } = this.#target
    const kept =
      this.withholdsPassword || password === undefined ? others : { ...others, [PASSWORD_HEADER]: password }
    const request = send({
      host,
      port,
      path: url,
      method,
      headers: { ...kept, 'content-length': body.length },
    })
    request.end(body)
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    return answer
  }
}

/** The body is sent with its length. */
function withoutFraming(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const {
    'transfer-encoding': _encoding,
    'content-length': _length,
    connection: _connection,
    ...others
  } = headers
  return others
}

function writtenRows({ headers }: IncomingMessage): number {
  const summary = headers['x-clickhouse-summary']
  return typeof summary === 'string'
    ? Number((JSON.parse(summary) as { written_rows?: string }).written_rows ?? 0)
    : 0
}
