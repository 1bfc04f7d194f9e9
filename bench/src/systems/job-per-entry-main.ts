// The baseline: Fastify and BullMQ as their documentation shows them, with one job per entry. `job-per-entry-main.ts api|worker`.
import { randomUUID } from 'node:crypto'
import {
  type ClickHouseAccess,
  type ClickHouseClient,
  connectClickHouse,
  logsTable,
} from '@sluice/clickhouse'
import { connectRedis } from '@sluice/runtime'
import { type Entry, entrySchema, limits } from '@sluice/schema'
import { Queue, Worker } from 'bullmq'
import { fastify } from 'fastify'

/** What both processes get as JSON in the environment variable `BASELINE`. */
export interface BaselineSettings {
  readonly redisUrl: string
  readonly clickhouse: ClickHouseAccess
  readonly apiKey: string
  readonly projectId: string
  readonly port: number
}

type Row = ReturnType<typeof toRow>

const QUEUE = 'entries'
const batchLimits = { rowsMax: 1_000, waitMs: 200 } as const
/** Enough jobs that one batch fills while another is being inserted. */
const CONCURRENCY = 2 * batchLimits.rowsMax
const INSERT_TIMEOUT_MS = 30_000
const RETENTION_MS = 30 * 86_400_000

const settings = JSON.parse(process.env['BASELINE'] ?? '') as BaselineSettings
const isApi = process.argv[2] === 'api'
const connection = connectRedis(settings.redisUrl, { failFast: isApi })
connection.on('error', (error: Error) => console.error(error.message))
const app = fastify({
  bodyLimit: limits.bodyBytesMax,
  // Like Sluice: values are neither converted nor removed, and requests are not logged.
  ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allowUnionTypes: true } },
  logger: false,
})
interface WaitingRow {
  readonly row: Row
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Inserts rows in batches: when `rowsMax` rows wait, or `waitMs` after the first of them. */
class BatchInserter {
  readonly #client: ClickHouseClient
  #waiting: WaitingRow[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(client: ClickHouseClient) {
    this.#client = client
  }

  /** Resolves when the row is in ClickHouse. */
  insert(row: Row): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, resolve, reject })
      if (this.#waiting.length >= batchLimits.rowsMax) void this.#flush()
      else this.#timer ??= setTimeout(() => void this.#flush(), batchLimits.waitMs)
    })
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const batch = this.#waiting
    this.#waiting = []
    try {
      await this.#client.insert({
        table: logsTable,
        values: batch.map(({ row }) => row),
        format: 'JSONEachRow',
        // The rows are batched here already, so ClickHouse need not wait for more.
        clickhouse_settings: { async_insert: 0, date_time_input_format: 'best_effort' },
      })
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}

app.get('/readyz', () => ({ status: 'ok' }))
const close = isApi ? await serveApi() : await runWorker()
await app.listen({ host: '127.0.0.1', port: settings.port })
process.once('SIGTERM', () => {
  void app
    .close()
    .then(close)
    .finally(() => process.exit())
})

async function serveApi(): Promise<() => Promise<void>> {
  const queue = new Queue<Row>(QUEUE, {
    connection,
    defaultJobOptions: {
      attempts: 10,
      backoff: { type: 'exponential', delay: 500 },
      removeOnComplete: true,
      removeOnFail: 10_000,
    },
  })
  await queue.waitUntilReady()
  app.addSchema(entrySchema)
  const logs = { type: 'array', maxItems: limits.entriesPerRequestMax, items: { $ref: 'Entry#' } } as const
  app.post<{ Body: Entry | { logs: Entry[] } }>('/v1/logs', {
    schema: {
      body: {
        type: 'object',
        if: { type: 'object', required: ['logs'] },
        // oxlint-disable-next-line unicorn/no-thenable -- a JSON Schema keyword
        then: { type: 'object', properties: { logs } },
        else: { $ref: 'Entry#' },
      },
    },
    onRequest: async (request, reply) => {
      if (request.headers.authorization !== `Bearer ${settings.apiKey}`) await reply.code(401).send()
    },
    handler: async ({ body }, reply) => {
      const rows = ('logs' in body ? (body.logs as Entry[]) : [body]).map(toRow)
      const [first] = rows
      if (rows.length === 1 && first !== undefined) await queue.add('entry', first)
      else await queue.addBulk(rows.map((data) => ({ name: 'entry', data })))
      return reply.code(202).send({ accepted: rows.length })
    },
  })
  return () => queue.close()
}

/** An entry as the columns of Sluice's own table. */
function toRow({ metadata = {}, ...entry }: Entry): object {
  const receivedAtMs = Date.now()
  const receivedAt = new Date(receivedAtMs).toISOString()
  return {
    id: randomUUID(),
    project_id: settings.projectId,
    received_at: receivedAt,
    timestamp: receivedAt,
    expires_on: new Date(receivedAtMs + RETENTION_MS).toISOString().slice(0, 10),
    ...entry,
    metadata_text: metadata,
  }
}

async function runWorker(): Promise<() => Promise<void>> {
  const clickhouse = connectClickHouse(settings.clickhouse, {
    requestTimeoutMs: INSERT_TIMEOUT_MS,
    connectionsMax: 10,
  })
  const inserter = new BatchInserter(clickhouse)
  const worker = new Worker<Row, void>(QUEUE, (job) => inserter.insert(job.data), {
    connection,
    concurrency: CONCURRENCY,
  })
  worker.on('error', (error) => console.error(error.message))
  await worker.waitUntilReady()
  return async () => {
    await worker.close()
    await clickhouse.close()
  }
}
