// The worker of the job-per-entry baseline: each job waits until the batch that contains its row is inserted.
import {
  clickhouseAccessFrom,
  type ClickHouseClient,
  clickhouseSettings,
  connectClickHouse,
  logsTable,
} from '@sluice/clickhouse'
import { startOpsServer } from '@sluice/ops'
import {
  commonSettings,
  connectRedis,
  createLogger,
  readSettings,
  redisSettings,
  runProcess,
} from '@sluice/runtime'
import { Worker } from 'bullmq'
import { type Row, rowQueue } from './row.ts'

const batchLimits = { rowsMax: 1_000, waitMs: 200 } as const
/** Enough jobs that one batch fills while another is being inserted. */
const CONCURRENCY = 2 * batchLimits.rowsMax
const INSERT_TIMEOUT_MS = 30_000

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

const config = readSettings({ ...commonSettings, ...redisSettings, ...clickhouseSettings }, process.env)
const logger = createLogger('job-per-entry-worker', config.LOG_LEVEL)

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    const redis = connectRedis(config.REDIS_URL, { failFast: false })
    redis.on('error', (error: Error) => logger.warn({ err: error }, 'redis connection failed'))
    const clickhouse = connectClickHouse(clickhouseAccessFrom(config), {
      requestTimeoutMs: INSERT_TIMEOUT_MS,
      connectionsMax: 10,
    })
    const inserter = new BatchInserter(clickhouse)
    const worker = new Worker<Row, void>(rowQueue.name, (job) => inserter.insert(job.data), {
      connection: redis,
      concurrency: CONCURRENCY,
    })
    worker.on('error', (error) => logger.warn({ err: error }, 'queue failed'))
    await worker.waitUntilReady()
    const ops = await startOpsServer({
      host: config.OPS_HOST,
      port: config.OPS_PORT,
      readiness: () => ({ ready: true, reasons: [] }),
    })
    return {
      stop: async () => {
        await worker.close()
        await clickhouse.close()
        await ops.close()
        redis.disconnect()
      },
    }
  },
})
