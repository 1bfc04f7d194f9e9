import { Redis } from 'ioredis'

export interface RedisTuning {
  /**
   * True where a caller waits for an answer: a command fails at once when there is no connection, and is never sent
   * twice behind the caller's back. False where a process may wait for Redis as long as it takes.
   */
  readonly failFast: boolean
  /** How long one command may take, ms. Only with `failFast`. */
  readonly commandTimeoutMs?: number
}

const CONNECT_TIMEOUT_MS = 2_000
/** Redis comes back within seconds after a restart; asking more often than this helps nobody. */
const RECONNECT_DELAY_MAX_MS = 1_000

/** A connection that reconnects for ever. Listen to its 'error' events: they say why it is down. */
export function connectRedis(url: string, { failFast, commandTimeoutMs }: RedisTuning): Redis {
  const common = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: 10_000,
    retryStrategy: (attempt: number) => Math.min(RECONNECT_DELAY_MAX_MS, 50 * attempt),
    maxRetriesPerRequest: null,
  }
  if (!failFast) return new Redis(url, common)
  return new Redis(url, {
    ...common,
    // Refuses what was under way when a connection is lost; with null it would never be settled.
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    ...(commandTimeoutMs === undefined ? {} : { commandTimeout: commandTimeoutMs }),
  })
}
