import type { RedisConnection } from '@sluice/runtime'

/**
 * What the process needs outside of itself, such as `redis`, `clickhouse` and `shard 0`: why each does not work, as far as the process
 * knows now; undefined if it works.
 */
export type DependencyFailures = Readonly<Record<string, string | undefined>>

export interface DependencyStatus {
  readonly name: string
  readonly state: 'up' | 'down'
  /** How long it has been in this state, in whole seconds. */
  readonly seconds: number
  /** The last error, also after it has ended. Without passwords. */
  readonly lastError?: string
}

/**
 * Remembers since when each dependency works or fails.
 *
 * A dependency: up ⇄ down, at the first check that finds it so.
 *
 * @param failures makes no remote call. The names may change: a shard is added
 * @returns checks the dependencies, and returns their states, in the order of the failures. To be called at an interval
 */
export function dependencyCheck(
  failures: () => DependencyFailures,
  monotonicMs: () => number,
): () => DependencyStatus[] {
  let known = new Map<string, { isUp: boolean; sinceMs: number; lastError: string | undefined }>()
  return () => {
    const nowMs = monotonicMs()
    const found = Object.entries(failures()).map(([name, error]) => {
      const before = known.get(name)
      const isUp = error === undefined
      const sinceMs = before?.isUp === isUp ? before.sinceMs : nowMs
      return [name, { isUp, sinceMs, lastError: error ?? before?.lastError }] as const
    })
    known = new Map(found)
    return Array.from(known, ([name, { isUp, sinceMs, lastError }]) => ({
      name,
      state: isUp ? 'up' : 'down',
      seconds: Math.floor((nowMs - sinceMs) / 1_000),
      ...(lastError === undefined ? {} : { lastError: withoutSecrets(lastError) }),
    }))
  }
}

/**
 * Why a connection to Redis is not open. In a cluster, one open connection is enough: the shards are dependencies of their own.
 */
export function redisFailure(redis: Pick<RedisConnection, 'status' | 'on'>): () => string | undefined {
  let lastError = ''
  redis.on('error', (error: Error) => (lastError = `: ${error.message}`))
  return () =>
    redis.status === 'ready' ? undefined : `the connection to Redis is ${redis.status}${lastError}`
}

/** A message is a hint. Longer ones quote what was sent. */
const LENGTH_MAX = 200

/**
 * A message of an error as operators may see it. Redis quotes the arguments of an unknown command, and `HELLO` has the password. A URL
 * may have credentials.
 */
export function withoutSecrets(message: string): string {
  return message
    .replace(/,? with args beginning with:.*/su, '')
    .replaceAll(/\/\/[^/@\s]*@/gu, '//')
    .slice(0, LENGTH_MAX)
}
