import { readFileSync } from 'node:fs'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { parseRedisUrl, type RedisAddress } from './redis-url.ts'
import { SettingsError } from './settings.ts'

/** A connection to Redis; one to a Redis Cluster is a connection to each node that is needed. */
export type RedisConnection = Redis | Cluster

export interface RedisTuning {
  /**
   * True where a caller waits for an answer: a command fails at once when there is no connection, and is never sent
   * twice behind the caller's back. False where a process may wait for Redis as long as it takes.
   */
  readonly failFast: boolean
  /** How long one command may take, ms; after that a connection that has said nothing is given up. Only with `failFast`. */
  readonly commandTimeoutMs?: number
  /** Who may vouch for Redis' certificate, as a file in PEM; those that Node knows without it. */
  readonly tlsCaFile?: string | undefined
  /** What the Sentinels themselves ask for. */
  readonly sentinelPassword?: string | undefined
}

/** What every connection to a server of Redis has. */
type ServerOptions = Omit<RedisOptions, 'replyMapping' | 'retryStrategy'>

const CONNECT_TIMEOUT_MS = 2_000
/** Redis comes back within seconds after a restart; asking more often than this helps nobody. */
const RECONNECT_DELAY_MAX_MS = 1_000
/** How long a node of a cluster may be away before what waits for it tries again. */
const CLUSTER_RETRY_DELAY_MS = 500
/**
 * Where another server may take over, one that says nothing for so long is given up, to ask who is the master now.
 * BullMQ lets Redis wait for work for up to 10 s.
 */
const SILENCE_MAX_MS = 15_000

/**
 * A connection that reconnects for ever. Listen to its 'error' events: they say why it is down.
 *
 * @param url see `parseRedisUrl`
 * @throws SettingsError
 */
export function connectRedis(url: string, tuning: RedisTuning): RedisConnection {
  const address = parseRedisUrl(url)
  const { failFast, commandTimeoutMs } = tuning
  const { username, password, kind, nodes } = address
  const silenceMaxMs = failFast ? commandTimeoutMs : kind === 'single' ? undefined : SILENCE_MAX_MS
  const common: ServerOptions = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...tlsOptions(address, tuning),
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: 10_000,
    maxRetriesPerRequest: null,
    ...(silenceMaxMs === undefined ? {} : { socketTimeout: silenceMaxMs }),
    ...(failFast && commandTimeoutMs !== undefined ? { commandTimeout: commandTimeoutMs } : {}),
  }
  if (kind === 'cluster') return connectCluster(address, common, failFast)
  const server =
    kind === 'single' ? nodes[0] : sentinelOptions(address.masterName, address, tuning.sentinelPassword)
  return new Redis({
    ...common,
    ...server,
    db: address.db,
    retryStrategy,
    // A master that became a replica: its address, or the Sentinels, lead to the new one. 1: connect again. 2: and send
    // the command again, which was refused.
    reconnectOnError: (error: Error) => (/(^|-)READONLY /.test(error.message) ? (failFast ? 1 : 2) : false),
    ...(failFast
      ? {
          // Refuses what was under way when a connection is lost; with null it would never be settled.
          maxRetriesPerRequest: 0,
          enableOfflineQueue: false,
          autoResendUnfulfilledCommands: false,
        }
      : {}),
  })
}

/** The servers that hold the data behind a connection: one, or the masters of a cluster. */
export function redisServers(connection: RedisConnection): Redis[] {
  return connection instanceof Cluster ? connection.nodes('master') : [connection]
}

function sentinelOptions(
  name: string,
  { nodes, tls }: RedisAddress,
  password: string | undefined,
): ServerOptions {
  return {
    name,
    sentinels: [...nodes],
    sentinelRetryStrategy: retryStrategy,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    enableTLSForSentinelMode: tls,
    ...(password === undefined ? {} : { sentinelPassword: password }),
  }
}

/**
 * What ioredis does behind the caller's back in a cluster is bounded by its reasons. A command that a node has refused
 * without running it (MOVED, ASK, TRYAGAIN) is sent again always. One whose connection was lost, and that so may have
 * run, only where commands may wait; for ever then, since a BullMQ worker takes any other end for a failed job.
 */
function connectCluster(address: RedisAddress, node: ServerOptions, failFast: boolean): Cluster {
  const retryDelayMs = failFast ? 0 : CLUSTER_RETRY_DELAY_MS
  const cluster = new Cluster([...address.nodes], {
    redisOptions: node,
    clusterRetryStrategy: retryStrategy,
    enableOfflineQueue: !failFast,
    retryDelayOnFailover: retryDelayMs,
    retryDelayOnClusterDown: retryDelayMs,
    maxRedirections: failFast ? 16 : Number.POSITIVE_INFINITY,
    // Certificates name hosts, so the connections must know them by their names.
    dnsLookup: (host, callback) => callback(null, host),
  })
  // Before there is a cluster, a node that is away is no error as long as another one answers.
  cluster.on('node error', (error: Error) => {
    if (cluster.status === 'ready') cluster.emit('error', error)
  })
  return cluster
}

function retryStrategy(attempt: number): number {
  return Math.min(RECONNECT_DELAY_MAX_MS, 50 * attempt)
}

/** Node verifies the certificate against these, or its own, and against the host's name. */
function tlsOptions({ kind, tls }: RedisAddress, { tlsCaFile }: RedisTuning): ServerOptions {
  if (!tls) return {}
  const options = tlsCaFile === undefined ? {} : { ca: readCa(tlsCaFile) }
  return kind === 'sentinel' ? { tls: options, sentinelTLS: options } : { tls: options }
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new SettingsError(`REDIS_TLS_CA_FILE cannot be read: ${(error as Error).message}`)
  }
}
