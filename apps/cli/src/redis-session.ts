import { once } from 'node:events'
import { type ApiKeyRecord, Registry } from '@sluice/projects'
import {
  checkReplication,
  connectRedis,
  countedIn,
  type DurableRedis,
  durableRedis,
  installationNames,
  NotReplicatedError,
  type RedisConnection,
  redisServers,
} from '@sluice/runtime'
import type { Context } from './context.ts'
import { CliError, describeNetworkError, SILENT } from './errors.ts'
import { type Flags, type RedisAccess, redisAccess } from './service-access.ts'
import { redactUrl } from './terminal.ts'

/** Redis and its replicas normally respond within milliseconds. */
const DEADLINE_MS = 5_000
const REPLICATION_WAIT_MS = 4_000

/**
 * Opens a connection to Redis for one task, and closes it in any case. Changes run on `durable`, which rejects them while a replica that
 * need not confirm may be promoted.
 */
export async function withRedis<Result>(
  access: RedisAccess,
  task: (redis: RedisConnection, durable: DurableRedis) => Promise<Result>,
): Promise<Result> {
  const { url, prefix: _prefix, memoryBytes: _memoryBytes, replicas, ...tuning } = access
  const redis = connectRedis(url, { ...tuning, failFast: true, commandTimeoutMs: DEADLINE_MS })
  // ioredis emits an error for each failed reconnection. The first failure also rejects the operation that awaits it.
  redis.on('error', ignore)
  const waitMs = REPLICATION_WAIT_MS
  const durable = durableRedis(redis, { ...tuning, url, replicas, waitMs, onError: ignore })
  let danger: string | undefined
  try {
    await once(redis, 'ready', { signal: AbortSignal.timeout(DEADLINE_MS) })
    // Of a cluster. Otherwise each is opened by the first command, and further commands are rejected meanwhile. A node that is
    // unavailable rejects the commands that need it.
    const nodes = redisServers(redis).filter(({ status }) => status === 'wait')
    await Promise.allSettled(nodes.map((node) => node.connect()))
    await durable.ready(AbortSignal.timeout(DEADLINE_MS))
    if (durable.replicas > 0) {
      const servers = redisServers(redis).filter(({ status }) => status === 'ready')
      const checks = Promise.all(servers.map((server) => checkReplication(server, replicas)))
      const findings = await checks.catch((error: unknown) => {
        if (!(error instanceof NotReplicatedError)) throw error
        danger = `cannot be checked: ${error.message}`
        return []
      })
      danger ??= findings.find((each) => each.danger !== undefined)?.danger
      durable.block(danger, countedIn(findings))
    }
    return await task(redis, durable)
  } catch (error) {
    const address = `Redis at ${redactUrl(url)}`
    if (danger !== undefined && error instanceof NotReplicatedError)
      throw new CliError(`${address} ${danger}. Correct this, and repeat the command`, { cause: error })
    const reason = describeRedisError(error)
    if (reason === undefined) throw error
    throw new CliError(`${address} ${reason}; \`npm start\` starts the local services`, { cause: error })
  } finally {
    durable.close()
    redis.disconnect()
  }
}

const ignore = (): void => undefined

/** ioredis has no classes or codes for most of its errors, only these messages. */
const lostConnection = /^Connection is closed|^Stream isn't writeable/

function describeRedisError(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  // Redis Cluster: why the last node that was tried did not respond.
  if ('lastNodeError' in error) return describeRedisError(error.lastNodeError)
  if (error.name === 'AbortError' || error.message === 'Command timed out') return SILENT
  if (lostConnection.test(error.message)) return 'closed the connection'
  if (error instanceof NotReplicatedError)
    return `may lose the change in a failover: ${error.message}. Repeat the command`
  if (error.name === 'ReplyError') return `returned an error: ${error.message}`
  return describeNetworkError(error)
}

/** Opens the registry of projects and keys for one task. @throws CliError when Redis is unavailable */
export async function withRegistry<Result>(
  flags: Flags,
  context: Context,
  task: (registry: Registry) => Promise<Result>,
): Promise<Result> {
  const access = await redisAccess(flags, context)
  const prefix = installationNames(access.prefix).registryPrefix
  return withRedis(access, (redis, durable) => task(new Registry(redis, prefix, Date.now, durable)))
}

export async function keysOf({ projects, keys }: Registry, projectId: string): Promise<ApiKeyRecord[]> {
  if ((await projects.find(projectId)) === undefined) throw new CliError(`there is no project ${projectId}`)
  return keys.list(projectId)
}
