import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { Readiness } from '../process.ts'
import {
  ifPermitted,
  type RedisConnection,
  redisInfoField,
  redisServers,
  RegularCheck,
} from './connection.ts'
import type { DurableRedis } from './durable-redis.ts'
import { checkReplication, countedIn, type ReplicationFindings } from './replication.ts'

/** With other values, Redis loses what it has acknowledged in a crash, or evicts it. */
const required = { appendonly: 'yes', appendfsync: 'always', 'maxmemory-policy': 'noeviction' } as const
type Setting = keyof typeof required
const settingNames = Object.keys(required) as Setting[]
/** What a server reports. A value is undefined if the server does not permit reading it. */
type Values = Readonly<Partial<Record<Setting, string | undefined>>>

export interface DurabilityCheckOptions {
  readonly redis: RedisConnection
  /** Whether the process is ready with a Redis that may lose or evict acknowledged entries. */
  readonly allowUnsafe: boolean
  /** Where what is acknowledged goes. It is blocked while a replica that need not confirm may be promoted. */
  readonly durable: DurableRedis
  readonly logger: Logger
}

/**
 * Checks that each Redis server that stores data keeps what it acknowledges: after each connect, and every five seconds. Settings can
 * change while Redis runs, and nodes of a cluster are replaced without an event of the connection. A server that does not permit reading its settings counts as safe, with a warning in the log.
 */
export class DurabilityCheck extends RegularCheck<DurabilityCheckOptions> {
  /** Why the process is not ready with each server that was checked, by its address. */
  readonly #problems = new Map<string, readonly string[]>()
  /** Why each server that rejects all writes does so. */
  readonly #unwritable = new Map<string, string>()
  /** What the last check of the replicas of each server has found. */
  readonly #replication = new Map<string, ReplicationFindings>()
  readonly #logged = new Set<string>()

  override start(): void {
    this.#block()
    super.start()
  }

  /** Ready when at least one server was checked, and no checked server is unsafe. */
  get readiness(): Readiness {
    const unwritable = [...this.#unwritable.values()]
    if (this.options.allowUnsafe) return { ready: unwritable.length === 0, reasons: unwritable }
    if (this.#problems.size === 0)
      return { ready: false, reasons: ['the settings of Redis are not checked yet'] }
    const problems = [...this.#problems.values(), this.options.durable.readiness.reasons].flat()
    const reasons = [...unwritable, ...problems]
    return { ready: reasons.length === 0, reasons }
  }

  async check(): Promise<void> {
    const servers = new Map(redisServers(this.options.redis).map((server) => [addressOf(server), server]))
    for (const results of [this.#problems, this.#unwritable, this.#replication])
      for (const address of results.keys()) if (!servers.has(address)) results.delete(address)
    await Promise.all([...servers].map(([address, server]) => this.#checkServer(address, server)))
  }

  async #checkServer(address: string, server: Redis): Promise<void> {
    let values: Values
    try {
      await this.#checkWrites(address, server)
      values = await readValues(server)
    } catch {
      // The server is unavailable. The owner of the connection logs it, and the last result holds.
      return
    }
    const unknown = settingNames.filter((name) => values[name] === undefined)
    const hidden = `Redis does not permit reading ${unknown.join(', ')}; not checked`
    if (unknown.length > 0) this.#logOnce('warn', hidden, { required })
    const reasons = [...problemsOf(address, values), ...(await this.#checkReplicas(address, server))]
    this.#problems.set(address, reasons)
    for (const reason of reasons) this.#logOnce(this.options.allowUnsafe ? 'warn' : 'error', reason)
  }

  /** With `appendfsync always` Redis exits instead. @throws if the server is unavailable */
  async #checkWrites(address: string, server: Redis): Promise<void> {
    const persistence = await ifPermitted(server.info('persistence'))
    if (redisInfoField(persistence ?? '', 'aof_last_write_status') === 'err') {
      const reason = `the disk of Redis${address} is full, or fails: its append-only file cannot be written (MISCONF)`
      this.#unwritable.set(address, reason)
      this.#logOnce('error', reason)
    } else if (this.#unwritable.delete(address)) this.options.logger.info(`Redis${address} writes again`)
  }

  async #checkReplicas(address: string, server: Redis): Promise<string[]> {
    const { durable } = this.options
    if (durable.replicas === 0) return []
    try {
      this.#replication.set(address, await checkReplication(server, durable.replicas))
    } catch (error) {
      const message = `Redis${address}: its replicas cannot be checked; the last result holds`
      this.#logOnce('warn', message, { err: error })
    }
    this.#block()
    const findings = this.#replication.get(address)
    if (findings === undefined) return [`Redis${address}: its replicas are not checked yet`]
    const { problems, warnings } = findings
    for (const warning of warnings) this.#logOnce('warn', `Redis${address}: ${warning}`)
    return problems.map((problem) => `Redis${address} ${problem}`)
  }

  #block(): void {
    const { durable } = this.options
    if (durable.replicas === 0) return
    const findings = [...this.#replication]
    if (findings.length === 0) return durable.block('the replicas of Redis are not checked yet')
    const found = findings.find(([, { danger }]) => danger !== undefined)
    durable.block(found && `Redis${found[0]} ${found[1].danger}`, countedIn(findings.map(([, each]) => each)))
  }

  #logOnce(level: 'warn' | 'error', message: string, fields: object = {}): void {
    if (this.#logged.has(message)) return
    this.#logged.add(message)
    this.options.logger[level](fields, message)
  }
}

/** Why a server with these settings may lose or evict what it has acknowledged. */
function problemsOf(address: string, values: Values): string[] {
  const wrong = settingNames.filter((name) => values[name] !== undefined && values[name] !== required[name])
  if (wrong.length === 0) return []
  const problems = wrong.map((name) => `${name} is ${values[name]} instead of ${required[name]}`).join(', ')
  return [`Redis${address} may lose acknowledged entries: ${problems}. REDIS_ALLOW_UNSAFE=true permits this`]
}

/** @throws if the server is unavailable */
async function readValues(server: Redis): Promise<Values> {
  // One by one: Redis 6 does not accept several names.
  const replies = await ifPermitted(Promise.all(settingNames.map((name) => server.config('GET', name))))
  if (replies !== undefined) return Object.fromEntries(settingNames.map((name, i) => [name, replies[i]?.[1]]))
  const info = (await ifPermitted(server.info())) ?? ''
  const isAppending = redisInfoField(info, 'aof_enabled')
  return {
    appendonly: isAppending && (isAppending === '1' ? 'yes' : 'no'),
    'maxmemory-policy': redisInfoField(info, 'maxmemory_policy'),
  }
}

/** Empty for a server behind Sentinels, since its address changes. */
function addressOf({ options }: Redis): string {
  return options.sentinels ? '' : ` ${options.host}:${options.port}`
}
