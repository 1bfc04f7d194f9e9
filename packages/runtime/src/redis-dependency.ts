import type { DependencyCheck } from './dependencies.ts'
import type { RedisConnection } from './redis.ts'

/** Whether a connection to Redis is open. In a cluster, one open connection is enough: the shards are dependencies of their own. */
export function redisDependency(redis: Pick<RedisConnection, 'status' | 'on'>): DependencyCheck {
  let lastError: string | undefined
  redis.on('error', (error: Error) => (lastError = error.message))
  return {
    name: 'redis',
    failure: () => {
      if (redis.status === 'ready') return undefined
      const state = `the connection to Redis is ${redis.status}`
      return lastError === undefined ? state : `${state}: ${lastError}`
    },
  }
}
