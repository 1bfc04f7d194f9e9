import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { readCertificates } from './certificates.ts'
import { RecentNodes } from './recent-nodes.ts'
import { parseRedisUrl, type RedisAddress } from './redis-url.ts'

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

/** Refuses what was under way when a connection is lost; with null it would never be settled. */
const neverSentAgain = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false } as const

const CONNECT_TIMEOUT_MS = 2_000
/** Redis comes back within seconds after a restart; asking more often than this helps nobody. */
const RECONNECT_DELAY_MAX_MS = 1_000
/** How long a node of a cluster may be away before what waits for it tries again. */
const CLUSTER_RETRY_DELAY_MS = 500
/**
 * A node that does not take connections is asked again after this long; in between, commands for it are refused without
 * a connection each. The first of the two is for a connection that was lost while the node was well.
 */
const NODE_RECONNECT_DELAYS_MS: readonly number[] = [50, 1_000]
/** A node that is away fails for each command anew; its errors are worth one line a second. */
const NODE_ERROR_INTERVAL_MS = 1_000
/** Where another server may take over, one that says nothing for so long is given up, to ask who is the master now. */
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
    ...(failFast ? { ...neverSentAgain, enableOfflineQueue: false } : {}),
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
 *
 * Where commands fail fast, a node that is away keeps its place for a while, and they fail there. Without that each of them
 * would ask another node, be sent on by it and open a connection. Then the node is given up all the same, so that a cluster
 * of which no node is left is started on anew.
 */
function connectCluster(address: RedisAddress, node: ServerOptions, failFast: boolean): Cluster {
  const retryDelayMs = failFast ? 0 : CLUSTER_RETRY_DELAY_MS
  const cluster = new Cluster([...address.nodes], {
    redisOptions: { ...node, ...(failFast ? neverSentAgain : {}) },
    clusterRetryStrategy: retryStrategy,
    clusterNodeRetryStrategy: failFast ? (attempt) => NODE_RECONNECT_DELAYS_MS[attempt - 1] ?? null : null,
    enableOfflineQueue: !failFast,
    retryDelayOnFailover: retryDelayMs,
    retryDelayOnClusterDown: retryDelayMs,
    maxRedirections: failFast ? 16 : Number.POSITIVE_INFINITY,
    // Certificates name hosts, so the connections must know them by their names.
    dnsLookup: (host, callback) => callback(null, host),
  })
  const failedLately = new RecentNodes(NODE_ERROR_INTERVAL_MS, () => performance.now())
  cluster.on('node error', (error: Error, name: string) => {
    // Before there is a cluster, a node that is away is no error as long as another one answers.
    if (cluster.status !== 'ready' || !failedLately.add(name)) return
    cluster.emit('error', error)
    // Another node may have its slots by now, and of those that fail here nobody else would tell.
    if (failFast) cluster.refreshSlotsCache()
  })
  return cluster
}

function retryStrategy(attempt: number): number {
  return Math.min(RECONNECT_DELAY_MAX_MS, 50 * attempt)
}

/** Node verifies the certificate against these, or its own, and against the host's name. */
function tlsOptions({ kind, tls }: RedisAddress, { tlsCaFile }: RedisTuning): ServerOptions {
  if (!tls) return {}
  const options = tlsCaFile === undefined ? {} : { ca: readCertificates('REDIS_TLS_CA_FILE', tlsCaFile) }
  return kind === 'sentinel' ? { tls: options, sentinelTLS: options } : { tls: options }
}
