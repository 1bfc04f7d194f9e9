// The job-per-entry baseline's worker: each job waits for the insert of the batch that its row went into.
import {
  clickhouseSettings,
  commonSettings,
  connectClickHouse,
  connectRedis,
  createLogger,
  readSettings,
  redisSettings,
  runProcess,
  startOpsServer,
} from '@sluice/runtime'
import { Worker } from 'bullmq'
import { BatchInserter, batchLimits } from './batch-inserter.ts'
import { queueName } from './job-per-entry-queue.ts'
import type { Row } from './row.ts'
import { accessFrom } from './settings.ts'

/** One batch fills while another is inserted. */
const CONCURRENCY = 2 * batchLimits.rowsMax
const INSERT_DEADLINE_MS = 30_000

const config = readSettings({ ...commonSettings, ...redisSettings, ...clickhouseSettings }, process.env)
const logger = createLogger('job-per-entry-worker', config.LOG_LEVEL)

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    const redis = connectRedis(config.REDIS_URL, { failFast: false })
    redis.on('error', (error: Error) => logger.warn({ err: error }, 'redis connection failed'))
    const clickhouse = connectClickHouse(accessFrom(config), {
      requestTimeoutMs: INSERT_DEADLINE_MS,
      connectionsMax: 10,
    })
    const inserter = new BatchInserter(clickhouse)
    const worker = new Worker<Row, void>(queueName, (job) => inserter.insert(job.data), {
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
