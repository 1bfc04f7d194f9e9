import { Registry } from '@sluice/projects'
import { connectRedis, createLogger, runProcess, startOpsServer } from '@sluice/runtime'
import { createIdSource, EntryValidator, redisNames } from '@sluice/schema'
import { buildApp } from './app.ts'
import { Authenticator } from './authentication/authenticator.ts'
import { ChunkQueue } from './chunks/chunk-queue.ts'
import { chunkLimits, ChunkWriter } from './chunks/chunk-writer.ts'
import { readApiConfig } from './config.ts'
import { connectionLimits } from './connections/connection-limits.ts'
import { Intake } from './intake/intake.ts'

const config = readApiConfig(process.env)
const logger = createLogger('api', config.LOG_LEVEL)

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    const names = redisNames(config.SLUICE_PREFIX)
    const redis = connectRedis(config.REDIS_URL, {
      failFast: true,
      commandTimeoutMs: chunkLimits.addDeadlineMs,
    })
    const subscriber = connectRedis(config.REDIS_URL, { failFast: false })
    for (const connection of [redis, subscriber]) {
      connection.on('error', (error: Error) => logger.warn({ err: error }, 'redis connection failed'))
    }
    const registry = new Registry(redis, names.registryPrefix)
    const authenticator = new Authenticator(registry)
    subscriber.on('message', (_channel: string, change: string) => authenticator.invalidate(change))
    subscriber.subscribe(registry.changesChannel).catch((error: unknown) => {
      logger.warn(
        { err: error },
        'not subscribed to changes of keys; they take effect within seconds all the same',
      )
    })

    const queue = new ChunkQueue(redis, names, logger)
    const makeId = createIdSource(Date.now)
    const writer = new ChunkWriter(queue, makeId)
    const readiness = (): { ready: boolean; reasons: string[] } => ({
      ready: queue.isConnected,
      reasons: queue.isConnected ? [] : [`the connection to Redis is ${redis.status}`],
    })
    const intake = new Intake(new EntryValidator(), makeId)
    const app = buildApp({
      authenticator,
      intake,
      writer,
      now: Date.now,
      logger,
      readiness,
      connectionLimits,
      trustedProxies: config.trustedProxies,
    })
    const url = await app.listen({ host: config.HOST, port: config.PORT })
    const ops = await startOpsServer({ host: config.OPS_HOST, port: config.OPS_PORT, readiness })
    logger.info({ url, opsUrl: ops.url }, 'listening')

    return {
      stop: async () => {
        await app.close()
        await writer.drain()
        await queue.close()
        await ops.close()
        redis.disconnect()
        subscriber.disconnect()
      },
    }
  },
})
