// The API of the job-per-entry baseline: each entry is one BullMQ job. A batch request adds its jobs in one call.
import {
  commonSettings,
  connectRedis,
  createLogger,
  readSettings,
  redisSettings,
  runProcess,
} from '@sluice/runtime'
import { Queue } from 'bullmq'
import { apiSettings, buildApp } from './app.ts'
import { type Row, rowQueue } from './row.ts'

const config = readSettings({ ...commonSettings, ...redisSettings, ...apiSettings }, process.env)
const logger = createLogger('job-per-entry-api', config.LOG_LEVEL)

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    const redis = connectRedis(config.REDIS_URL, { failFast: true })
    redis.on('error', (error: Error) => logger.warn({ err: error }, 'redis connection failed'))
    const queue = new Queue<Row>(rowQueue.name, {
      connection: redis,
      defaultJobOptions: {
        attempts: 10,
        backoff: { type: 'exponential', delay: 500 },
        removeOnComplete: true,
        removeOnFail: 10_000,
      },
    })
    await queue.waitUntilReady()
    const app = buildApp({
      apiKey: config.API_KEY,
      projectId: config.PROJECT_ID,
      store: async (rows) => {
        const [first] = rows
        if (rows.length === 1 && first !== undefined) await queue.add(rowQueue.jobName, first)
        else await queue.addBulk(rows.map((data) => ({ name: rowQueue.jobName, data })))
      },
    })
    await app.listen({ host: '127.0.0.1', port: config.PORT })
    return {
      stop: async () => {
        await app.close()
        await queue.close()
        redis.disconnect()
      },
    }
  },
})
