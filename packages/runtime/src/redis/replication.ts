import { Redis } from 'ioredis'
import { isIPv4 } from 'node:net'
import { ifPermitted, isForbidden, redisInfoField } from './connection.ts'
import { pairsOf } from './durable-redis.ts'
import { NotReplicatedError } from './replicated-redis.ts'

/** What speaks against a set-up with replicas. */
export interface ReplicationFindings {
  /** Why nothing may be confirmed, although as many replicas as required would confirm it. */
  readonly danger?: string
  /** Why the process is not ready. The danger is one of them. */
  readonly problems: readonly string[]
  /** What costs availability only. */
  readonly warnings: readonly string[]
  /**
   * The addresses of the replicas that were counted. Undefined without Sentinels: nothing else remembers a replica that is away, except for
   * a cluster, which knows its replicas at once. Undefined, too, if the server is no primary, or does not report them.
   */
  readonly counted?: readonly string[] | undefined
}

const SENTINEL_TIMEOUT_MS = 2_000

/**
 * Checks a primary, and its Sentinels if it has any, against the number of replicas that must have everything.
 *
 * Every replica may be promoted, so all of them must have what was acknowledged: with two replicas and one confirmation, the other one may
 * lack it. A replica that is away counts, because it may return without it when the primary is gone.
 *
 * @param replicas `REDIS_REPLICAS_ACK`, at least 1
 * @throws if the server is unavailable, or if no Sentinel replies: then the replicas are not known
 */
export async function checkReplication(server: Redis, replicas: number): Promise<ReplicationFindings> {
  const info = await ifPermitted(server.info('replication'))
  if (info === undefined) return { problems: [], warnings: ['does not permit reading its replicas'] }
  if (redisInfoField(info, 'role') !== 'master') return { problems: [], warnings: [] }
  const connected = Number(redisInfoField(info, 'connected_slaves') ?? 0)
  const addresses = Array.from(
    info.matchAll(/^slave\d+:ip=([^,]*),port=(\d+)/gm),
    ([, ip, port]) => `${ip}:${port}`,
  )
  const online = info.match(/^slave\d+:.*state=online/gm)?.length ?? 0
  const sentinels = await readSentinels(server)
  const { replicas: listed, hidden } = typeof sentinels === 'object' ? sentinels : { replicas: [], hidden: 0 }
  const known = Math.max(
    connected,
    await countClusterReplicas(server),
    listed.length + hidden,
    areComparable([...addresses, ...listed]) ? new Set([...addresses, ...listed]).size : 0,
  )
  const counted =
    typeof sentinels !== 'object' || addresses.length < connected ? undefined : [...addresses, ...listed]
  const warnings = await warningsOf(server, sentinels)
  if (known > replicas) {
    const danger = `has ${known} replicas, and only ${replicas} must confirm (REDIS_REPLICAS_ACK): another one may be promoted without acknowledged entries`
    return { danger, problems: [danger], warnings, counted }
  }
  if (online >= replicas) return { problems: [], warnings, counted }
  const problem = `has ${online} of the ${replicas} replicas that must confirm (REDIS_REPLICAS_ACK): it rejects entries`
  return { problems: [problem], warnings, counted }
}

/** The addresses of all replicas that were counted. Undefined if a server does not report its own. */
export function countedIn(findings: readonly ReplicationFindings[]): ReadonlySet<string> | undefined {
  const counted = findings.map((each) => each.counted)
  return counted.includes(undefined) ? undefined : new Set(counted.flatMap((addresses) => addresses ?? []))
}

/**
 * Whether two of these addresses are the same replica only if they are equal. The Sentinels take them from the primary, but they resolve
 * host names, and IPv6 addresses have several forms.
 */
function areComparable(addresses: readonly string[]): boolean {
  return addresses.every((address) => isIPv4(address.slice(0, address.lastIndexOf(':'))))
}

/**
 * The replicas of a cluster node, including failed ones. 0 without a cluster, or if the server does not permit the question. Their
 * addresses may differ from the addresses of the connected replicas, for example with `cluster-announce-ip`.
 */
async function countClusterReplicas(server: Redis): Promise<number> {
  const reply = await ifPermitted(server.call('CLUSTER', 'NODES'))
  const nodes = String(reply)
    .split('\n')
    .map((line) => line.split(' '))
  const id = nodes.find(([, , flags = '']) => flags.includes('myself'))?.[0]
  return id === undefined ? 0 : nodes.filter(([, , , primary]) => primary === id).length
}

interface Sentinels {
  readonly count: number
  readonly quorum: number
  /** Those that were ever connected, whether they are reachable or not. */
  readonly replicas: readonly string[]
  /** The number of those that are not listed, because of `replica-announced no`. They may be promoted, too. */
  readonly hidden: number
}

async function warningsOf(server: Redis, sentinels: Sentinels | 'forbidden' | undefined): Promise<string[]> {
  const warnings: string[] = []
  // Otherwise a primary that is cut off accepts writes that no replica confirms, until its memory is full.
  const [, required] = (await server.config('GET', 'min-replicas-to-write').catch(() => [])) as string[]
  if (required === '0') warnings.push('min-replicas-to-write is 0 instead of 1')
  // `WAIT` alone also confirms what a replica has only in memory: see `ReplicatedRedis`.
  const [command] = (await server.call('COMMAND', 'INFO', 'WAITAOF').catch(() => [])) as unknown[]
  if (command === null)
    warnings.push(
      'has no WAITAOF: after a full synchronisation, a replica confirms what is not on its disk yet. Use Redis or Valkey 7.2 or later',
    )
  if (sentinels === 'forbidden') warnings.push('the Sentinels do not permit reading their replicas')
  else if (sentinels !== undefined && (sentinels.count < 3 || sentinels.quorum <= sentinels.count / 2))
    warnings.push(
      `${sentinels.count} Sentinels with a quorum of ${sentinels.quorum}: there should be three or more, and the quorum should be their majority`,
    )
  return warnings
}

/**
 * What the first Sentinel that replies knows. Undefined if the server was not found through Sentinels.
 *
 * @throws if none replies
 */
async function readSentinels({ options }: Redis): Promise<Sentinels | 'forbidden' | undefined> {
  const { sentinels, name, sentinelPassword, sentinelTLS, enableTLSForSentinelMode } = options
  if (!sentinels || name === undefined) return undefined
  let isAnswered = false
  for (const address of sentinels) {
    const sentinel = new Redis({
      ...address,
      ...(sentinelPassword ? { password: sentinelPassword } : {}),
      ...(enableTLSForSentinelMode === true && sentinelTLS !== undefined ? { tls: sentinelTLS } : {}),
      connectTimeout: SENTINEL_TIMEOUT_MS,
      commandTimeout: SENTINEL_TIMEOUT_MS,
      retryStrategy: () => null,
      enableReadyCheck: false,
    })
    sentinel.on('error', () => undefined)
    try {
      const master = new Map(pairsOf((await sentinel.call('SENTINEL', 'MASTER', name)) as string[]))
      const listed = (await sentinel.call('SENTINEL', 'REPLICAS', name)) as string[][]
      const valueOf = (field: string): number => Number(master.get(field) ?? 0)
      const replicas = listed
        .map((each) => new Map(pairsOf(each)))
        .map((each) => `${each.get('ip')}:${each.get('port')}`)
      const hidden = Math.max(0, valueOf('num-slaves') - replicas.length)
      return { count: valueOf('num-other-sentinels') + 1, quorum: valueOf('quorum'), replicas, hidden }
    } catch (error) {
      // Another one may reply.
      isAnswered ||= isForbidden(error) && !String(error).includes('No such master')
    } finally {
      sentinel.disconnect()
    }
  }
  if (isAnswered) return 'forbidden'
  throw new NotReplicatedError('no Sentinel answers which replicas it knows')
}
