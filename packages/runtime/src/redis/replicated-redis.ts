import calculateSlot from 'cluster-key-slot'
import { type ChainableCommander, Cluster, type Redis } from 'ioredis'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Readiness } from '../process.ts'
import { connectRedis, type RedisConnection, type RedisTuning } from './connection.ts'
import {
  type DurableRedis,
  plainRedis,
  type RedisScript,
  scriptCommand,
  type ScriptOptions,
} from './durable-redis.ts'

/** Redis ran the script, but too few replicas have confirmed it: it is not known whether its effects survive the loss of the primary. */
export class NotReplicatedError extends Error {
  override name = 'NotReplicatedError'
}

export interface ReplicatedRedisOptions extends Pick<RedisTuning, 'tlsCaFile' | 'sentinelPassword'> {
  readonly url: string
  /** How many replicas must have everything on their disks. */
  readonly replicas: number
  readonly waitMs: number
  readonly onError: (error: Error) => void
}

/** @returns what steps run on if `options.replicas` must confirm them; without replicas, on the connection itself */
export function durableRedis(redis: RedisConnection, options: ReplicatedRedisOptions): DurableRedis {
  return options.replicas === 0 ? plainRedis(redis) : new ReplicatedRedis(redis, options)
}

/** The wait blocks a connection, so the scripts of a process share several. */
const CONNECTIONS = 4
/** The time for the script itself, and for the network, in addition to the wait. */
const ANSWER_MARGIN_MS = 800
const READY_CHECK_INTERVAL_MS = 20
/** If nothing was confirmed for this long, the process asks which server is the primary. */
const REDISCOVERY_AFTER_MS = 2_000

/**
 * Runs scripts so that their effects and their results survive the loss of the primary: each resolves only when the primary and the
 * replicas have on disk what the script has written, and everything that it has read.
 *
 * The script, `WAIT` and `WAITAOF` are sent together on one connection, which never sends a command again on a new one. So they reach the
 * same server, and no other server confirms the script.
 *
 * - `WAITAOF` waits for the last write of its connection. So each script ends with a write, even if it has only read: what it has read may
 *   not be on the replicas yet.
 * - A replica that is asked reports what it has synced before it syncs what it has just received, and then only once per second. `WAIT`
 *   before `WAITAOF` makes it sync first: with `appendfsync always`, it replies to a second question after that.
 * - `ROLE` lists the connected replicas. A replica that did not have to confirm could be promoted, so then nothing is confirmed. The same
 *   holds for a replica that was not counted yet, since it may have confirmed in the place of an absent one.
 * - Servers without `WAITAOF` (before 7.2) get `WAIT` only. It confirms the memory of the replicas. With `appendfsync always` it confirms
 *   their disks, too, since they send their replies after they have synced. The exception is a replica that rewrites its append-only file
 *   after a full synchronisation: until the rewrite ends, it confirms what is only in its memory.
 */
export class ReplicatedRedis implements DurableRedis {
  readonly #other: RedisConnection
  readonly #options: ReplicatedRedisOptions
  readonly #links: { readonly redis: RedisConnection; running: number }[]
  /** Since when the scripts of a hash tag are not confirmed. Scripts on other nodes of a cluster may be. */
  readonly #failingSinceMs = new Map<string, number>()
  #blockedBecause: string | undefined
  #counted: ReadonlySet<string> | undefined

  /** @param other another connection to the same Redis: it may have to find the new primary, too */
  constructor(other: RedisConnection, options: ReplicatedRedisOptions) {
    this.#other = other
    this.#options = options
    const { url, tlsCaFile, sentinelPassword, waitMs, onError } = options
    this.#links = Array.from({ length: CONNECTIONS }, () => {
      const tuning = { tlsCaFile, sentinelPassword, commandTimeoutMs: waitMs + ANSWER_MARGIN_MS }
      return { redis: connectRedis(url, { ...tuning, failFast: true }).on('error', onError), running: 0 }
    })
  }

  script<Answer>(lua: string, { isBinary = false }: ScriptOptions = {}): RedisScript<Answer> {
    const command = scriptCommand(withLastWrite(lua))
    const call = isBinary ? 'callBuffer' : 'call'
    return async (keys, args) => {
      if (this.#blockedBecause !== undefined) throw new NotReplicatedError(this.#blockedBecause)
      const [key = ''] = keys
      // Every key of Sluice begins with its hash tag.
      const tag = key.slice(0, key.indexOf('}') + 1)
      // A link that is being opened rejects at once, and would therefore always be the least busy one.
      const ready = this.#links.filter(({ redis }) => redis.status === 'ready')
      const [first, ...others] = ready
      if (first === undefined) throw new Error('the connections to Redis are not open')
      const link = others.reduce((best, each) => (each.running < best.running ? each : best), first)
      link.running += 1
      try {
        const parameters = [keys.length, ...keys, ...args] as const
        const server = await serverOf(link.redis, key)
        const answer = await command((name, text) =>
          this.#run(server, (pipeline) => pipeline[call](name, text, ...parameters)),
        )
        this.#failingSinceMs.delete(tag)
        return answer as Answer
      } catch (error) {
        if (isRedirection(error) && link.redis instanceof Cluster) link.redis.refreshSlotsCache()
        if (isSignOfFailover(error)) this.#noteFailure(tag)
        throw error
      } finally {
        link.running -= 1
      }
    }
  }

  get replicas(): number {
    return this.#options.replicas
  }

  block(reason: string | undefined, counted?: ReadonlySet<string>): void {
    this.#blockedBecause = reason
    this.#counted = counted
  }

  get readiness(): Readiness {
    const isOpen = this.#links.some(({ redis }) => redis.status === 'ready')
    return { ready: isOpen, reasons: isOpen ? [] : ['no connection for confirmed steps is open'] }
  }

  onClose(listener: () => void): () => void {
    for (const { redis } of this.#links) redis.on('close', listener)
    return () => {
      for (const { redis } of this.#links) redis.off('close', listener)
    }
  }

  async ready(signal: AbortSignal): Promise<void> {
    // Not `once` of node:events, which rejects with the first error of a connection that is still trying.
    while (this.#links.some(({ redis }) => redis.status !== 'ready'))
      await sleep(READY_CHECK_INTERVAL_MS, undefined, { signal })
  }

  close(): void {
    for (const { redis } of this.#links) redis.disconnect()
  }

  async #run(
    redis: Redis,
    addScript: (pipeline: ChainableCommander) => ChainableCommander,
  ): Promise<unknown> {
    const { replicas, waitMs } = this.#options
    const half = waitMs / 2
    const pipeline = addScript(redis.pipeline())
    pipeline.call('WAIT', replicas, half).call('WAITAOF', 1, replicas, half).call('ROLE')
    const [ran, waitedForMemory, waitedForDisk, role] = (await pipeline.exec()) ?? []
    const hasNoWaitAof = waitedForDisk?.[0]?.message.startsWith('ERR unknown command')
    const waited = hasNoWaitAof ? waitedForMemory : waitedForDisk
    if (ran === undefined || waited === undefined || role === undefined)
      throw new Error('the script was not sent')
    const [error, answer] = ran
    if (error !== null) throw error
    const [waitError, confirmed] = waited
    if (waitError !== null)
      throw new NotReplicatedError('Redis did not confirm the replication', { cause: waitError })
    const [local, count] = Array.isArray(confirmed) ? confirmed.map(Number) : [1, Number(confirmed)]
    if (local !== 1 || count === undefined || count < replicas)
      throw new NotReplicatedError(`${count} of ${replicas} replicas have confirmed in time`)
    const connected = connectedReplicas(role)
    if (connected.length > replicas)
      throw new NotReplicatedError(
        `${connected.length} replicas are connected, and only ${replicas} must confirm`,
      )
    const uncounted = connected.find((address) => this.#counted?.has(address) === false)
    if (uncounted !== undefined)
      throw new NotReplicatedError(`the replica ${uncounted} is connected, and was not counted yet`)
    return answer
  }

  /** The primary may have been replaced without knowing it: it is cut off from its replicas and from the Sentinels, but not from here. */
  #noteFailure(tag: string): void {
    const nowMs = performance.now()
    const sinceMs = this.#failingSinceMs.get(tag) ?? nowMs
    const isDue = nowMs - sinceMs >= REDISCOVERY_AFTER_MS
    this.#failingSinceMs.set(tag, isDue ? nowMs : sinceMs)
    if (!isDue) return
    const connections = [...this.#links.map(({ redis }) => redis), this.#other]
    for (const redis of connections) {
      if (redis instanceof Cluster) redis.refreshSlotsCache()
      else if (redis.status === 'ready') redis.disconnect(true)
    }
  }
}

/** Their addresses. None if the server does not permit `ROLE`. */
function connectedReplicas([error, role]: readonly [Error | null, unknown]): string[] {
  if (error !== null || !Array.isArray(role)) return []
  const replicas: unknown = role[2]
  return Array.isArray(replicas) ? (replicas as string[][]).map(([ip, port]) => `${ip}:${port}`) : []
}

/**
 * The deletion permits the write above `maxmemory`: see `permitWrites`. While the slot of a cluster moves, Redis aborts a script at the first
 * key that the node does not have. The key that is deleted never exists, so it is read first: then the script aborts before it writes.
 */
function withLastWrite(lua: string): string {
  return `local function run()
${lua}
end
local last = string.match(KEYS[1], '^{.-}') .. ':last-write'
redis.call('EXISTS', last .. ':none')
local reply = run()
redis.call('DEL', last .. ':none')
redis.call('SET', last, '1')
return reply`
}

/**
 * The server of a key. In a cluster, the node is chosen once for all commands of a script: a pipeline of ioredis' `Cluster` chooses it for
 * each command while the nodes change, and then commands that were never sent take the replies of others.
 */
async function serverOf(connection: RedisConnection, key: string): Promise<Redis> {
  if (!(connection instanceof Cluster)) return connection
  const address = connection.slots[calculateSlot(key)]?.[0]
  const node = connection
    .nodes('master')
    .find(({ options }) => address !== undefined && `${options.host}:${options.port}` === address)
  if (node?.status === 'wait') await node.connect()
  if (node?.status === 'ready') return node
  connection.refreshSlotsCache()
  throw new Error('the connection to the node of the slot is not open')
}

function isRedirection(error: unknown): boolean {
  return error instanceof Error && /(^|-)(MOVED|ASK|CLUSTERDOWN|READONLY) /.test(error.message)
}

function isSignOfFailover(error: unknown): boolean {
  return (
    error instanceof NotReplicatedError ||
    (error instanceof Error && /(^|-)(NOREPLICAS|MOVED|ASK) /.test(error.message))
  )
}
