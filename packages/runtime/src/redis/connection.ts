import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { readCertificates } from '../settings.ts'
import { PeriodicTask } from '../timing.ts'
import { parseRedisUrl, type RedisAddress } from './url.ts'

/** A connection to Redis. For a Redis Cluster, it consists of one connection per node in use. */
export type RedisConnection = Redis | Cluster

export interface RedisTuning {
  /**
   * True where a caller waits for the reply: a command fails at once when there is no connection, and is never sent
   * again without the caller's knowledge. False where a process may wait for Redis without a limit.
   */
  readonly failFast: boolean
  /**
   * How long one command may take, ms. A connection that is silent for this long is closed. Only with `failFast`. Without
   * `failFast`, a connection that is silent for 15 s while it waits for a reply is closed, and a new one is opened.
   */
  readonly commandTimeoutMs?: number
  /** A PEM file with the CAs that may sign Redis' certificate. Default: the CAs that Node trusts. */
  readonly tlsCaFile?: string | undefined
  /** The password of the Sentinels themselves. */
  readonly sentinelPassword?: string | undefined
}

/** The options of every connection to one Redis server. */
type ServerOptions = Omit<RedisOptions, 'replyMapping' | 'retryStrategy'>

/** Rejects the commands in flight when a connection is lost. With `maxRetriesPerRequest: null` they would never settle. */
const noResend = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false } as const

const CONNECT_TIMEOUT_MS = 2_000
/** A server closes its side of a connection at once, unless it is busy or gone. */
const DISCONNECT_TIMEOUT_MS = 500
/** Redis recovers within seconds after a restart. More frequent attempts would not find it sooner. */
const RECONNECT_DELAY_MAX_MS = 1_000
/** The wait before a command is sent again to a cluster node that was unavailable. */
const CLUSTER_RETRY_DELAY_MS = 500
/**
 * The waits before each attempt to reconnect to a node of a cluster. Meanwhile commands for the node fail without opening
 * a connection each. The first, short wait is for a connection that was lost while the node is available.
 */
const NODE_RECONNECT_DELAYS_MS: readonly number[] = [50, 1_000]
/** A node that is unavailable causes an error per command. To ask the others for the slots once per second is enough. */
const NODE_ERROR_INTERVAL_MS = 1_000
/**
 * A connection that waits for a reply and is silent for this long is closed. It may be open without a server behind it: a load
 * balancer may have lost its state, or another server may have taken over the address. Longer than any script takes.
 */
const SILENCE_MAX_MS = 15_000

/** Each check and each shard of a process listens to its connection. Above ten listeners, Node would warn of a leak. */
const LISTENERS_MAX = 1_000

/**
 * A connection that reconnects without a limit. Listen to its 'error' events: they report why it is down.
 *
 * @param url see `parseRedisUrl`
 * @throws SettingsError
 */
export function connectRedis(url: string, tuning: RedisTuning): RedisConnection {
  const address = parseRedisUrl(url)
  const { failFast, commandTimeoutMs } = tuning
  const { username, password, kind, nodes } = address
  const silenceMaxMs = failFast ? commandTimeoutMs : SILENCE_MAX_MS
  const common: ServerOptions = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...tlsOptions(address, tuning),
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    keepAlive: 10_000,
    maxRetriesPerRequest: null,
    ...(silenceMaxMs === undefined ? {} : { socketTimeout: silenceMaxMs }),
    ...(failFast && commandTimeoutMs !== undefined ? { commandTimeout: commandTimeoutMs } : {}),
  }
  if (kind === 'cluster') return connectCluster(address, common, failFast)
  const { sentinelPassword } = tuning
  const sentinels: ServerOptions = {
    sentinels: [...nodes],
    sentinelRetryStrategy: retryStrategy,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    enableTLSForSentinelMode: address.tls,
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
  }
  const redis: Redis = new Redis({
    ...common,
    ...(kind === 'single' ? nodes[0] : { ...sentinels, name: address.masterName }),
    db: address.db,
    retryStrategy,
    // The master became a replica. A new connection, by address or by the Sentinels, leads to the new master. 1 means:
    // reconnect. 2 means: reconnect and send the rejected command again.
    reconnectOnError: (error: Error) => {
      if (!/(^|-)READONLY /.test(error.message)) return false
      if (failFast) return 1
      // The caller does not see this error: the command is retried until a server accepts it.
      redis.emit('error', error)
      return 2
    },
    ...(failFast ? { ...noResend, enableOfflineQueue: false } : {}),
  })
  return redis.setMaxListeners(LISTENERS_MAX)
}

/**
 * Checks something while a connection is ready: at once, in an interval, and when it becomes ready again. It may lead to another server
 * then.
 */
export abstract class RegularCheck<Options extends { readonly redis: RedisConnection }> {
  protected readonly options: Options
  protected readonly intervalMs: number = 5_000
  #stop = (): void => undefined

  constructor(options: Options) {
    this.options = options
  }

  start(): void {
    const { redis } = this.options
    const task = new PeriodicTask(this.intervalMs, async () => {
      if (redis.status === 'ready') await this.check()
    })
    redis.on('ready', task.runNow)
    task.runNow()
    this.#stop = () => {
      redis.off('ready', task.runNow)
      task.stop()
    }
  }

  stop(): void {
    this.#stop()
  }

  /** Never rejects. */
  abstract check(): Promise<void>
}

/** The servers that store the data of a connection: one, or the masters of a cluster. */
export function redisServers(connection: RedisConnection): Redis[] {
  return connection instanceof Cluster ? connection.nodes('master') : [connection]
}

/** Reads a field of what Redis returns for INFO. Undefined if it is missing. */
export function redisInfoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]
}

/** Whether a server does not permit a command. Providers disable commands with different messages. The exceptions are states that end. */
export function isForbidden(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === 'ReplyError' &&
    !/^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|NOAUTH)\b/.test(error.message)
  )
}

/** The reply to a command. Undefined if the server does not permit it. */
export async function ifPermitted<Reply>(reply: Promise<Reply>): Promise<Reply | undefined> {
  return reply.catch((error: unknown) => {
    if (isForbidden(error)) return undefined
    throw error
  })
}

/**
 * ioredis resends commands in a cluster by itself. The options decide for which reasons. A command that a node rejected
 * without executing it (MOVED, ASK, TRYAGAIN) is always sent again. A command whose connection was lost may have been
 * executed. It is sent again only without `failFast`, and then without a limit, because a BullMQ worker treats any other
 * outcome as a failed job.
 *
 * With `failFast`, an unavailable node stays in the node list for a while, and its commands fail there. Otherwise each of
 * them would go to another node, be redirected by it and open a connection. After a while the node leaves the list. When no
 * node is left, ioredis connects to the cluster from the start.
 */
function connectCluster(address: RedisAddress, node: ServerOptions, failFast: boolean): Cluster {
  const retryDelayMs = failFast ? 0 : CLUSTER_RETRY_DELAY_MS
  const cluster = new Cluster([...address.nodes], {
    redisOptions: { ...node, ...(failFast ? noResend : {}) },
    clusterRetryStrategy: retryStrategy,
    clusterNodeRetryStrategy: failFast ? (attempt) => NODE_RECONNECT_DELAYS_MS[attempt - 1] ?? null : null,
    enableOfflineQueue: !failFast,
    retryDelayOnFailover: retryDelayMs,
    retryDelayOnClusterDown: retryDelayMs,
    maxRedirections: failFast ? 16 : Number.POSITIVE_INFINITY,
    // Certificates contain host names, so connections must use the names instead of resolved addresses.
    dnsLookup: (host, callback) => callback(null, host),
  })
  let dueAtMs = 0
  cluster.on('node error', (error: Error) => {
    const nowMs = performance.now()
    // During the start, an unavailable node is not an error as long as another one replies.
    if (cluster.status !== 'ready' || nowMs < dueAtMs) return
    dueAtMs = nowMs + NODE_ERROR_INTERVAL_MS
    cluster.emit('error', error)
    // Another node may have taken over the slots. Commands that fail here never learn of it from a redirection.
    if (failFast) cluster.refreshSlotsCache()
  })
  return cluster.setMaxListeners(LISTENERS_MAX)
}

function retryStrategy(attempt: number): number {
  return Math.min(RECONNECT_DELAY_MAX_MS, 50 * attempt)
}

/** Node verifies the certificate against these CAs, or its default ones, and against the host name. */
function tlsOptions({ kind, tls }: RedisAddress, { tlsCaFile }: RedisTuning): ServerOptions {
  if (!tls) return {}
  const options = tlsCaFile === undefined ? {} : { ca: readCertificates('REDIS_TLS_CA_FILE', tlsCaFile) }
  return kind === 'sentinel' ? { tls: options, sentinelTLS: options } : { tls: options }
}
