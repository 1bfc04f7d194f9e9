import { eventually } from '@sluice/harness'
import { findRedis, redisAnswers, type SupervisedProcess, type Supervisor } from '@sluice/local'
import { Redis, type RedisOptions } from 'ioredis'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export const PASSWORD = 'secret-of-the-test'

const READY_DEADLINE_MS = 20_000
const SLOTS = 16_384

export interface TestServer {
  readonly process: SupervisedProcess
  readonly port: number
}

/**
 * Starts a Redis that is separate from the shared one of the tests.
 *
 * @param lines additional lines of its configuration
 * @param isReady replaces the check by port and password
 */
export async function startRedisServer(
  supervisor: Supervisor,
  name: string,
  lines: readonly string[] = [],
  { port, isReady, args = [] }: ServerOptions = {},
): Promise<TestServer> {
  const program = await findRedis()
  const taken = port ?? (await supervisor.ports.free())
  const cwd = join(supervisor.dataDir, name)
  await mkdir(cwd)
  const config = [
    'bind 127.0.0.1',
    ...(isReady === undefined ? [`port ${taken}`] : []),
    ...lines,
    `dir "${cwd}"`,
  ]
  await writeFile(join(cwd, 'redis.conf'), `${config.join('\n')}\n`)
  const process = await supervisor.start({
    role: 'redis',
    name,
    ...program,
    args: [join(cwd, 'redis.conf'), ...args],
    cwd,
    readyDeadlineMs: READY_DEADLINE_MS,
    isReady: isReady ?? (() => redisAnswers(`redis://:${PASSWORD}@127.0.0.1:${taken}`)),
  })
  return { process, port: taken }
}

interface ServerOptions {
  readonly port?: number
  readonly isReady?: () => Promise<boolean>
  readonly args?: readonly string[]
}

/** The configuration of every server that stores the queue: a password, and every write is on disk before its reply. */
export const durable: readonly string[] = [
  `requirepass ${PASSWORD}`,
  `masterauth ${PASSWORD}`,
  'appendonly yes',
  'appendfsync always',
  'save ""',
  'maxmemory 256mb',
  'maxmemory-policy noeviction',
]

/** Queries one server, with a connection that does not follow the cluster or the Sentinels. */
export async function queryServer<T>(
  port: number,
  query: (redis: Redis) => Promise<T>,
  options: Pick<RedisOptions, 'password' | 'commandTimeout' | 'retryStrategy' | 'enableReadyCheck'> = {},
): Promise<T> {
  const redis = new Redis({ port, password: PASSWORD, commandTimeout: 5_000, ...options })
  redis.on('error', () => undefined)
  try {
    return await query(redis)
  } finally {
    redis.disconnect()
  }
}

export interface TestCluster {
  /** In the order of their slots. Each has the same number of slots. */
  readonly nodes: readonly TestServer[]
  readonly url: string
  /** The index of the node that has a key. */
  nodeOf(key: string): Promise<number>
}

/**
 * Starts a Redis Cluster of masters without replicas: while a node is down, its data is unavailable.
 *
 * @param lines additional lines of the configuration of each node
 */
export async function startRedisCluster(
  supervisor: Supervisor,
  size: number,
  lines: readonly string[] = [],
): Promise<TestCluster> {
  const nodes = await Promise.all(
    Array.from({ length: size }, (_, i) => startClusterNode(supervisor, `node-${i}`, lines)),
  )
  const slotsEach = Math.ceil(SLOTS / size)
  const [first] = nodes
  if (first === undefined) throw new RangeError('a cluster needs at least one node')
  const addresses = await Promise.all(
    nodes.map(({ port }) => queryServer(port, async (redis) => [port, await clusterPort(redis)] as const)),
  )
  for (const [i, { port }] of nodes.entries()) {
    const [from, to] = [i * slotsEach, Math.min(SLOTS, (i + 1) * slotsEach) - 1]
    await queryServer(port, async (redis) => {
      await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
      await redis.call('CLUSTER', 'ADDSLOTSRANGE', from, to)
    })
  }
  // After SET-CONFIG-EPOCH: a node that knows other nodes rejects it.
  await queryServer(first.port, async (redis) => {
    for (const [other, bus] of addresses) {
      if (other !== first.port) await redis.call('CLUSTER', 'MEET', '127.0.0.1', other, bus)
    }
  })
  await eventually(async () => {
    for (const { port } of nodes) {
      const info = await queryServer(port, (redis) => redis.cluster('INFO'))
      if (!info.includes('cluster_state:ok') || !info.includes(`cluster_slots_ok:${SLOTS}`)) {
        throw new Error('the cluster is not formed yet')
      }
    }
  })
  return {
    nodes,
    // Any node that replies returns the addresses of the others.
    url: `redis-cluster://:${PASSWORD}@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodeOf: async (key) =>
      Math.floor((await queryServer(first.port, (redis) => redis.cluster('KEYSLOT', key))) / slotsEach),
  }
}

/** Starts a node that knows no other one, and has no slots. */
export async function startClusterNode(
  supervisor: Supervisor,
  name: string,
  lines: readonly string[],
): Promise<TestServer> {
  return startRedisServer(supervisor, name, [
    ...durable,
    ...lines,
    'cluster-enabled yes',
    `cluster-port ${await supervisor.ports.free()}`,
    'cluster-node-timeout 2000',
    // Without a node, the others continue to reply.
    'cluster-require-full-coverage no',
  ])
}

/** The move of a slot from one node of a cluster to another, which are given by their ports. */
export class SlotMove {
  readonly slot: number
  readonly source: number
  readonly target: number

  constructor(slot: number, source: number, target: number) {
    this.slot = slot
    this.source = source
    this.target = target
  }

  /** The move of a key's slot to another node. */
  static async of(cluster: TestCluster, key: string): Promise<SlotMove> {
    const at = await cluster.nodeOf(key)
    const [source = 0, target = 0] = [cluster.nodes[at]?.port, cluster.nodes.at(at - 1)?.port]
    return new SlotMove(await queryServer(source, (node) => node.cluster('KEYSLOT', key)), source, target)
  }

  async begin(): Promise<void> {
    const [sourceId, targetId] = [await idOf(this.source), await idOf(this.target)]
    await this.setSlot(this.target, 'IMPORTING', sourceId)
    await this.setSlot(this.source, 'MIGRATING', targetId)
  }

  /**
   * Moves keys. It fails if a key exists on both nodes.
   *
   * @param keys default: all that are left
   * @param migrated runs afterwards, on the same connection to the source
   */
  async migrate(keys?: readonly string[], migrated?: (source: Redis) => Promise<void>): Promise<void> {
    const moving = keys ?? (await this.keysOn(this.source))
    if (moving.length === 0) return
    await queryServer(this.source, async (node) => {
      await node.call('MIGRATE', '127.0.0.1', this.target, '', 0, 5_000, 'AUTH', PASSWORD, 'KEYS', ...moving)
      await migrated?.(node)
    })
  }

  /** @param others nodes that learn of it at once, too */
  async end(others: readonly number[] = []): Promise<void> {
    const targetId = await idOf(this.target)
    for (const port of [this.target, this.source, ...others]) await this.setSlot(port, 'NODE', targetId)
  }

  async setSlot(port: number, ...state: readonly string[]): Promise<void> {
    await queryServer(port, (node) => node.call('CLUSTER', 'SETSLOT', this.slot, ...state))
  }

  keysOn(port: number): Promise<string[]> {
    return queryServer(
      port,
      (node) => node.call('CLUSTER', 'GETKEYSINSLOT', this.slot, 1_000) as Promise<string[]>,
    )
  }
}

/** The id of a node in its cluster. */
export async function idOf(port: number): Promise<string> {
  return String(await queryServer(port, (node) => node.call('CLUSTER', 'MYID')))
}

/** The port for the other nodes of the cluster. */
export async function clusterPort(redis: Redis): Promise<number> {
  const [, port] = (await redis.config('GET', 'cluster-port')) as [string, string]
  return Number(port)
}
