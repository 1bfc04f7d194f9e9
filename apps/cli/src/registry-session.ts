import { once } from 'node:events'
import { Registry, RegistryError } from '@sluice/projects'
import { connectRedis } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import { orExplain, type RedisAccess, shownUrl } from './connections.ts'
import { CliError, describeNetworkError } from './errors.ts'

/** Redis answers in milliseconds, or something is wrong. */
const CONNECT_DEADLINE_MS = 5_000
const COMMAND_DEADLINE_MS = 5_000

/**
 * Opens the registry of projects and keys for one task, and closes it whatever happens.
 *
 * @throws CliError when Redis cannot be used, or the registry refuses
 */
export async function withRegistry<Result>(
  access: RedisAccess,
  task: (registry: Registry) => Promise<Result>,
): Promise<Result> {
  const { url, prefix, ...tuning } = access
  const redis = orExplain(() =>
    connectRedis(url, { ...tuning, failFast: true, commandTimeoutMs: COMMAND_DEADLINE_MS }),
  )
  // Each reconnection that fails says so again; the first one is reported by what awaits it.
  redis.on('error', () => undefined)
  try {
    await once(redis, 'ready', { signal: AbortSignal.timeout(CONNECT_DEADLINE_MS) })
    return await task(new Registry(redis, redisNames(prefix).registryPrefix))
  } catch (error) {
    throw toCliError(error, access)
  } finally {
    redis.disconnect()
  }
}

function toCliError(error: unknown, { url }: RedisAccess): unknown {
  if (error instanceof RegistryError) return new CliError(error.message)
  const reason = describeRedisError(error)
  if (reason === undefined) return error
  return new CliError(`Redis at ${shownUrl(url)} ${reason}; \`npm start\` starts the local services`)
}

/** ioredis has no classes for most of its errors, only these texts. */
const lostConnection = /^Connection is closed|^Stream isn't writeable/

function describeRedisError(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  // Of a Redis Cluster: why the last of the nodes did not answer.
  if ('lastNodeError' in error) return describeRedisError(error.lastNodeError)
  if (error.name === 'AbortError' || error.message === 'Command timed out') return 'did not answer in time'
  if (lostConnection.test(error.message)) return 'closed the connection'
  if (error.name === 'ReplyError') return `refuses: ${error.message}`
  return describeNetworkError(error)
}
