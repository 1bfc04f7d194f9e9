import { eventually } from '@sluice/harness'
import type { Supervisor } from '@sluice/local'
import type { Redis } from 'ioredis'
import {
  durable,
  PASSWORD,
  queryServer,
  startRedisServer,
  type TestServer,
} from '../scaling/redis-servers.ts'
import { type RedisGroup, replicaFaultsOf, serverOn, whileDead } from './redis-group.ts'

const SENTINELS = 3
const NAME = 'sluice'
/** The replicas and the Sentinels have users of their own, so that a primary can be cut off from them and not from clients. */
const PEERS = ['replica', 'sentinel'] as const

const serverLines = [
  ...durable,
  ...PEERS.map((user) => `user ${user} on >${PASSWORD} ~* &* +@all`),
  'masteruser replica',
  'repl-diskless-sync-delay 0',
  'repl-timeout 10',
]

/** Starts a primary, its replicas, and three Sentinels. */
export async function startSentinelGroup(supervisor: Supervisor, replicas: number): Promise<RedisGroup> {
  const first = await startRedisServer(supervisor, 'redis-1', serverLines)
  const replicaLines = [...serverLines, `replicaof 127.0.0.1 ${first.port}`]
  const followers = await Promise.all(
    Array.from({ length: replicas }, (_, i) => startRedisServer(supervisor, `redis-${i + 2}`, replicaLines)),
  )
  const servers = [first, ...followers]
  const ports = await startSentinels(supervisor, first.port)
  const command = (...words: readonly string[]): Promise<unknown> =>
    querySentinel(ports[0] ?? 0, (redis) => redis.call('SENTINEL', [...words, NAME]))
  const primaryPort = async (): Promise<number> =>
    Number(((await command('GET-MASTER-ADDR-BY-NAME')) as string[])[1])
  const replaced = (port: number): Promise<void> =>
    eventually(async () => {
      if ((await primaryPort()) === port) throw new Error('the primary is not replaced yet')
    })

  /** The primary accepts writes until the Sentinels have told it. */
  const commandFailover = async (): Promise<void> => {
    const port = await primaryPort()
    await command('FAILOVER')
    await replaced(port)
  }
  /** Cuts the primary off from its replicas and from the Sentinels, but not from clients, until another one has taken over. */
  const isolatePrimary = async (): Promise<void> => {
    const port = await primaryPort()
    const set = async (state: 'on' | 'off'): Promise<void> =>
      queryServer(port, async (redis) => {
        for (const user of PEERS) await redis.call('ACL', 'SETUSER', user, state)
        if (state === 'off') for (const user of PEERS) await redis.call('CLIENT', 'KILL', 'USER', user)
      })
    await set('off')
    await replaced(port)
    await set('on')
  }

  const group: RedisGroup = {
    url: `redis-sentinel://:${PASSWORD}@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/${NAME}`,
    faults: {
      'the primary is killed': async () => {
        const port = await primaryPort()
        await whileDead(serverOn(port, servers), () => replaced(port))
      },
      'the Sentinels replace the primary by command': commandFailover,
      'the primary is cut off from replicas and Sentinels': isolatePrimary,
    },
    replicaFaults: replicaFaultsOf(async () => {
      const port = await primaryPort()
      return servers.find((server) => server.port !== port) as TestServer
    }),
    /** One server is the primary, all others have everything that it has, and all Sentinels know all. */
    formed: () =>
      eventually(async () => {
        const primary = await primaryPort()
        for (const port of ports) await requireKnown(port, replicas)
        for (const { port } of servers) {
          const info = await queryServer(port, (redis) => redis.info('replication'))
          const expected =
            port === primary
              ? [`connected_slaves:${replicas}`]
              : ['master_link_status:up', `master_port:${primary}`]
          if (!expected.every((line) => info.includes(line)))
            throw new Error(`redis on ${port} does not report ${expected.join(' and ')} yet`)
        }
      }),
  }
  await group.formed()
  return group
}

/** @returns the ports */
async function startSentinels(supervisor: Supervisor, primaryPort: number): Promise<number[]> {
  const lines = [
    `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} 2`,
    `sentinel auth-user ${NAME} sentinel`,
    `sentinel auth-pass ${NAME} ${PASSWORD}`,
    `sentinel down-after-milliseconds ${NAME} 1000`,
    `sentinel failover-timeout ${NAME} 3000`,
  ]
  const start = async (_: unknown, i: number): Promise<number> => {
    const port = await supervisor.ports.free()
    await startRedisServer(supervisor, `sentinel-${i + 1}`, [`port ${port}`, ...lines], {
      port,
      args: ['--sentinel'],
      isReady: async () => (await querySentinel(port, (redis) => redis.ping())) === 'PONG',
    })
    return port
  }
  return Promise.all(Array.from({ length: SENTINELS }, start))
}

/** @throws unless a Sentinel knows the others and the replicas */
async function requireKnown(port: number, replicas: number): Promise<void> {
  const count = (what: string): Promise<number> =>
    querySentinel(port, async (redis) => ((await redis.call('SENTINEL', what, NAME)) as unknown[]).length)
  if ((await count('SENTINELS')) !== SENTINELS - 1 || (await count('REPLICAS')) !== replicas)
    throw new Error('the Sentinels do not know each other and the replicas yet')
}

function querySentinel<T>(port: number, query: (redis: Redis) => Promise<T>): Promise<T> {
  return queryServer(port, query, {
    password: '',
    // A busy machine takes seconds.
    commandTimeout: 30_000,
    retryStrategy: () => null,
    enableReadyCheck: false,
  })
}
