// Replaces ClickHouse's queue of asynchronous inserts for an engine that has none: an HTTP server in front of ClickHouse
// that accepts inserts only.
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { clickhouseSettings } from '@sluice/clickhouse'
import { commonSettings, createLogger, readSettings, runProcess } from '@sluice/runtime'

/**
 * ClickHouse's defaults for asynchronous inserts: `async_insert_max_data_size`, `async_insert_max_query_number` and
 * `async_insert_busy_timeout_max_ms`. The adaptive timeout grows to that maximum when inserts are frequent.
 */
const gatherLimits = { bytesMax: 10_485_760, insertsMax: 450, waitMs: 200 } as const
/** ClickHouse's default `async_insert_threads`. */
const INSERTS_IN_FLIGHT_MAX = 16
const ANSWER_DEADLINE_MS = 30_000

/** An insert as it arrives over HTTP. The URL contains the query. */
interface Insert {
  readonly url: string
  readonly authorization: string
  readonly body: Buffer
}

/** ClickHouse's response to an insert. */
interface InsertAnswer {
  readonly status: number
  readonly body: Buffer
}

/** Waiting inserts with the same query. */
interface Gathering {
  readonly bodies: Buffer[]
  readonly waiting: PromiseWithResolvers<InsertAnswer>[]
  readonly timer: NodeJS.Timeout
  bytes: number
}

/**
 * Combines many inserts into one, like ClickHouse's queue of asynchronous inserts. Inserts with the same query and settings
 * are concatenated without parsing, until they reach a size limit or the first one has waited long enough. All of them get
 * the same answer.
 */
class InsertGatherer {
  readonly #agent: Agent
  readonly #clickhouseUrl: string
  readonly #gatherings = new Map<string, Gathering>()

  constructor(clickhouseUrl: string, agent: Agent) {
    this.#clickhouseUrl = clickhouseUrl
    this.#agent = agent
  }

  insert({ url, authorization, body }: Insert): Promise<InsertAnswer> {
    const address = new URL(url, this.#clickhouseUrl)
    // The query id is unique for each request, so inserts with it would never combine.
    address.searchParams.delete('query_id')
    const key = `${authorization} ${address.href}`
    const gathering = this.#gatherings.get(key) ?? this.#open(key, address, authorization)
    const answered = Promise.withResolvers<InsertAnswer>()
    gathering.bodies.push(body)
    gathering.waiting.push(answered)
    gathering.bytes += body.length
    const isFull =
      gathering.bytes >= gatherLimits.bytesMax || gathering.waiting.length >= gatherLimits.insertsMax
    if (isFull) this.#flush(key, address, authorization)
    return answered.promise
  }

  #open(key: string, address: URL, authorization: string): Gathering {
    const timer = setTimeout(() => this.#flush(key, address, authorization), gatherLimits.waitMs)
    const gathering: Gathering = { bodies: [], waiting: [], timer, bytes: 0 }
    this.#gatherings.set(key, gathering)
    return gathering
  }

  #flush(key: string, address: URL, authorization: string): void {
    const gathering = this.#gatherings.get(key)
    if (gathering === undefined) return
    this.#gatherings.delete(key)
    clearTimeout(gathering.timer)
    const body = Buffer.concat(gathering.bodies)
    void this.#insertAll(gathering, { url: address.href, authorization, body })
  }

  async #insertAll({ waiting }: Gathering, insert: Insert): Promise<void> {
    try {
      const answer = await postInsert(insert, this.#agent)
      for (const { resolve } of waiting) resolve(answer)
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    }
  }
}

function postInsert({ url, authorization, body }: Insert, agent: Agent): Promise<InsertAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization, 'content-length': body.length }
    const signal = AbortSignal.timeout(ANSWER_DEADLINE_MS)
    const outgoing = request(url, { method: 'POST', agent, headers, signal }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.once('error', reject)
      response.once('end', () => resolve({ status: response.statusCode ?? 500, body: Buffer.concat(parts) }))
    })
    outgoing.once('error', reject)
    outgoing.end(body)
  })
}

async function handle(
  gatherer: InsertGatherer,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { url = '/', headers } = incoming
  if (url === '/readyz') {
    response.end('ok')
    return
  }
  const parts: Buffer[] = []
  for await (const part of incoming) parts.push(part as Buffer)
  const body = Buffer.concat(parts)
  const answer = await gatherer.insert({ url, authorization: headers.authorization ?? '', body })
  response.writeHead(answer.status, { 'content-length': answer.body.length }).end(answer.body)
}

const config = readSettings(
  {
    ...commonSettings,
    ...clickhouseSettings,
    PORT: { type: 'integer', minimum: 1, maximum: 65_535, default: 3000, description: 'The HTTP port.' },
  },
  process.env,
)
const logger = createLogger('insert-gatherer', config.LOG_LEVEL)

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: INSERTS_IN_FLIGHT_MAX })
    const gatherer = new InsertGatherer(config.CLICKHOUSE_URL, agent)
    const server = createServer((incoming, response) => {
      handle(gatherer, incoming, response).catch((error: unknown) => {
        logger.warn({ err: error }, 'insert failed')
        response.writeHead(500).end()
      })
    })
    await new Promise<void>((resolve) => server.listen(config.PORT, '127.0.0.1', resolve))
    return {
      stop: async () => {
        await new Promise<void>((resolve) => {
          server.close(() => resolve())
          server.closeIdleConnections()
        })
        agent.destroy()
      },
    }
  },
})
