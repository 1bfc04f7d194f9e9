import { askRedisVersion, findRedis, freePort, type SupervisedProcess, type Supervisor } from '@sluice/local'
import { Redis, type RedisOptions } from 'ioredis'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually } from '../support.ts'

export const PASSWORD = 'secret-of-the-test'

const READY_DEADLINE_MS = 20_000
const FORMED_DEADLINE_MS = 20_000
const SLOTS = 16_384

export interface TestServer {
  readonly process: SupervisedProcess
  readonly port: number
}

/**
 * Starts one more Redis beside those of the other tests: append-only, on disk before it answers, with a password.
 *
 * @param lines more of its configuration, given its port
 * @param isReady asks it in another way than by its port and password
 */
export async function startRedisServer(
  supervisor: Supervisor,
  name: string,
  lines: readonly string[] = [],
  { port, isReady, args = [] }: ServerOptions = {},
): Promise<TestServer> {
  const program = await findRedis(() => undefined)
  if (program.kind !== 'binary') {
    throw new Error('the tests of several Redis servers need a Redis on the PATH, not one in a container')
  }
  const taken = port ?? (await freePort())
  const cwd = join(supervisor.dataDir, name)
  await mkdir(cwd)
  const config = [
    'bind 127.0.0.1',
    ...(isReady === undefined ? [`port ${taken}`] : []),
    ...lines,
    `dir "${cwd}"`,
    // By which it is found again; its title would overwrite it.
    'set-proc-title no',
  ]
  await writeFile(join(cwd, 'redis.conf'), `${config.join('\n')}\n`)
  const process = await supervisor.start({
    role: 'redis',
    name,
    command: program.command,
    argv0: program.argv0,
    args: [join(cwd, 'redis.conf'), ...args],
    cwd,
    environment: {},
    readyDeadlineMs: READY_DEADLINE_MS,
    isReady:
      isReady ??
      (async () => (await askRedisVersion(`redis://:${PASSWORD}@127.0.0.1:${taken}`)) !== undefined),
  })
  return { process, port: taken }
}

interface ServerOptions {
  readonly port?: number
  readonly isReady?: () => Promise<boolean>
  readonly args?: readonly string[]
}

/** What every server that keeps the queue has. */
export const durable: readonly string[] = [
  `requirepass ${PASSWORD}`,
  `masterauth ${PASSWORD}`,
  'appendonly yes',
  'appendfsync always',
  'save ""',
  'maxmemory 256mb',
  'maxmemory-policy noeviction',
]

/** Asks one server, whatever it is part of. */
export async function ask<T>(
  port: number,
  question: (redis: Redis) => Promise<T>,
  options: Pick<RedisOptions, 'password' | 'commandTimeout' | 'retryStrategy' | 'enableReadyCheck'> = {},
): Promise<T> {
  const redis = new Redis({ port, password: PASSWORD, commandTimeout: 5_000, ...options })
  redis.on('error', () => undefined)
  try {
    return await question(redis)
  } finally {
    redis.disconnect()
  }
}

export interface TestCluster {
  /** In the order of the slots, of which each has as many. */
  readonly nodes: readonly TestServer[]
  readonly url: string
  /** Which of the nodes has a key. */
  nodeOf(key: string): Promise<number>
}

/** Starts a Redis Cluster of masters without replicas. What is on a node that is away has to wait for it. */
export async function startRedisCluster(supervisor: Supervisor, size: number): Promise<TestCluster> {
  const nodes = await Promise.all(
    Array.from({ length: size }, async (_, i) =>
      startRedisServer(supervisor, `node-${i}`, [
        ...durable,
        'cluster-enabled yes',
        `cluster-port ${await freePort()}`,
        'cluster-node-timeout 2000',
        // The other nodes go on without one.
        'cluster-require-full-coverage no',
      ]),
    ),
  )
  const slotsEach = Math.ceil(SLOTS / size)
  const [first] = nodes
  if (first === undefined) throw new RangeError('a cluster has a node')
  const addresses = await Promise.all(
    nodes.map(({ port }) => ask(port, async (redis) => [port, await clusterPort(redis)] as const)),
  )
  for (const [i, { port }] of nodes.entries()) {
    const [from, to] = [i * slotsEach, Math.min(SLOTS, (i + 1) * slotsEach) - 1]
    await ask(port, async (redis) => {
      await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
      await redis.call('CLUSTER', 'ADDSLOTSRANGE', from, to)
    })
  }
  // Not before: a node that knows another one takes no epoch any more.
  await ask(first.port, async (redis) => {
    for (const [other, bus] of addresses) {
      if (other !== first.port) await redis.call('CLUSTER', 'MEET', '127.0.0.1', other, bus)
    }
  })
  await eventually(FORMED_DEADLINE_MS, async () => {
    for (const { port } of nodes) {
      const info = await ask(port, (redis) => redis.cluster('INFO'))
      if (!info.includes('cluster_state:ok') || !info.includes(`cluster_slots_ok:${SLOTS}`)) {
        throw new Error('the cluster is not formed yet')
      }
    }
  })
  return {
    nodes,
    // One that answers tells of the others.
    url: `redis-cluster://:${PASSWORD}@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodeOf: async (key) =>
      Math.floor((await ask(first.port, (redis) => redis.cluster('KEYSLOT', key))) / slotsEach),
  }
}

async function clusterPort(redis: Redis): Promise<number> {
  const [, port] = (await redis.config('GET', 'cluster-port')) as [string, string]
  return Number(port)
}
