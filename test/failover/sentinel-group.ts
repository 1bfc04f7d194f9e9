import { eventually, pause } from '@sluice/harness'
import type { Supervisor } from '@sluice/local'
import type { Redis } from 'ioredis'
import type { RedisGroup } from './redis-group.ts'
import {
  durable,
  PASSWORD,
  queryServer,
  startRedisServer,
  type TestServer,
} from '../scaling/redis-servers.ts'

const SENTINELS = 3
const NAME = 'sluice'
/** The replicas and the Sentinels have users of their own, so that a primary can be cut off from them and not from clients. */
const PEERS = ['replica', 'sentinel'] as const
const FORMED_DEADLINE_MS = 60_000
const FAILOVER_DEADLINE_MS = 30_000

const configuration = [
  ...durable,
  ...PEERS.map((user) => `user ${user} on >${PASSWORD} ~* &* +@all`),
  'masteruser replica',
  'repl-diskless-sync-delay 0',
  'repl-timeout 10',
]

/** A primary, its replicas, and three Sentinels. */
export class SentinelGroup implements RedisGroup {
  readonly faults: RedisGroup['faults'] = {
    'the primary is killed': () => this.#killPrimary(),
    'the Sentinels replace the primary by command': () => this.#commandFailover(),
    'the primary is cut off from replicas and Sentinels': () => this.#isolatePrimary(),
  }
  readonly replicaFaults: RedisGroup['replicaFaults'] = {
    kill: (forMs) => this.#killReplica(forMs),
    freeze: (forMs) => this.#freezeReplica(forMs),
  }
  readonly #servers: readonly TestServer[]
  readonly #sentinels: readonly number[]

  private constructor(servers: readonly TestServer[], sentinels: readonly number[]) {
    this.#servers = servers
    this.#sentinels = sentinels
  }

  static async start(supervisor: Supervisor, replicas: number): Promise<SentinelGroup> {
    const primary = await startRedisServer(supervisor, 'redis-1', configuration)
    const followers = await Promise.all(
      Array.from({ length: replicas }, (_, i) =>
        startRedisServer(supervisor, `redis-${i + 2}`, [
          ...configuration,
          `replicaof 127.0.0.1 ${primary.port}`,
        ]),
      ),
    )
    const sentinels = await Promise.all(
      Array.from({ length: SENTINELS }, (_, i) =>
        startSentinel(supervisor, `sentinel-${i + 1}`, primary.port),
      ),
    )
    const group = new SentinelGroup([primary, ...followers], sentinels)
    await group.formed()
    return group
  }

  get url(): string {
    return `redis-sentinel://:${PASSWORD}@${this.#sentinels.map((port) => `127.0.0.1:${port}`).join(',')}/${NAME}`
  }

  /** The port of the current primary, according to the Sentinels. */
  async #primaryPort(): Promise<number> {
    const [port = 0] = this.#sentinels
    const address = await querySentinel(port, (redis) =>
      redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME),
    )
    return Number((address as string[])[1])
  }

  async #primary(): Promise<TestServer> {
    const port = await this.#primaryPort()
    return this.#find((server) => server.port === port)
  }

  async #replica(): Promise<TestServer> {
    const port = await this.#primaryPort()
    return this.#find((server) => server.port !== port)
  }

  /** Waits until one server is the primary and all others have everything that it has. */
  async formed(): Promise<void> {
    await eventually(FORMED_DEADLINE_MS, async () => {
      const port = await this.#primaryPort()
      for (const sentinel of this.#sentinels) {
        const [sentinels, replicas] = await querySentinel(sentinel, (redis) =>
          Promise.all(
            ['SENTINELS', 'REPLICAS'].map((what) => redis.call('SENTINEL', what, NAME) as Promise<unknown[]>),
          ),
        )
        if (sentinels?.length !== SENTINELS - 1 || replicas?.length !== this.#servers.length - 1)
          throw new Error('the Sentinels do not know each other and the replicas yet')
      }
      for (const server of this.#servers) {
        const info = await queryServer(server.port, (redis) => redis.info('replication'))
        const expected =
          server.port === port ? `connected_slaves:${this.#servers.length - 1}` : 'master_link_status:up'
        if (!info.includes(expected))
          throw new Error(`redis on ${server.port} does not report ${expected} yet`)
        if (server.port !== port && !info.includes(`master_port:${port}`))
          throw new Error(`redis on ${server.port} follows another server`)
      }
    })
  }

  /** Kills the primary, and starts it again when another one has taken over. */
  async #killPrimary(): Promise<void> {
    const { process, port } = await this.#primary()
    await process.stop({ signal: 'SIGKILL' })
    await this.#replaced(port)
    await process.start()
  }

  /** Makes the Sentinels replace the primary, which accepts writes until they have told it. */
  async #commandFailover(): Promise<void> {
    const port = await this.#primaryPort()
    const [sentinel = 0] = this.#sentinels
    await querySentinel(sentinel, (redis) => redis.call('SENTINEL', 'FAILOVER', NAME))
    await this.#replaced(port)
  }

  /** Cuts the primary off from its replicas and from the Sentinels, but not from clients, until another one has taken over. */
  async #isolatePrimary(): Promise<void> {
    const port = await this.#primaryPort()
    await queryServer(port, async (redis) => {
      for (const user of PEERS) await redis.call('ACL', 'SETUSER', user, 'off')
      for (const user of PEERS) await redis.call('CLIENT', 'KILL', 'USER', user)
    })
    await this.#replaced(port)
    await queryServer(port, async (redis) => {
      for (const user of PEERS) await redis.call('ACL', 'SETUSER', user, 'on')
    })
  }

  async #killReplica(downMs: number): Promise<void> {
    const { process } = await this.#replica()
    await process.stop({ signal: 'SIGKILL' })
    await pause(downMs)
    await process.start()
  }

  /** The replica answers nothing for a while: it lags. */
  async #freezeReplica(forMs: number): Promise<void> {
    const { process } = await this.#replica()
    process.kill('SIGSTOP')
    await pause(forMs)
    process.kill('SIGCONT')
  }

  async #replaced(port: number): Promise<void> {
    await eventually(FAILOVER_DEADLINE_MS, async () => {
      if ((await this.#primaryPort()) === port) throw new Error('the primary is not replaced yet')
    })
  }

  #find(isWanted: (server: TestServer) => boolean): TestServer {
    const server = this.#servers.find(isWanted)
    if (server === undefined) throw new Error('the group has no such server')
    return server
  }
}

async function startSentinel(supervisor: Supervisor, name: string, primaryPort: number): Promise<number> {
  const port = await supervisor.ports.free()
  await startRedisServer(
    supervisor,
    name,
    [
      `port ${port}`,
      `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} 2`,
      `sentinel auth-user ${NAME} sentinel`,
      `sentinel auth-pass ${NAME} ${PASSWORD}`,
      `sentinel down-after-milliseconds ${NAME} 1000`,
      `sentinel failover-timeout ${NAME} 3000`,
    ],
    {
      port,
      args: ['--sentinel'],
      isReady: async () => (await querySentinel(port, (redis) => redis.ping())) === 'PONG',
    },
  )
  return port
}

function querySentinel<T>(port: number, query: (redis: Redis) => Promise<T>): Promise<T> {
  return queryServer(port, query, {
    password: '',
    commandTimeout: 1_000,
    retryStrategy: () => null,
    enableReadyCheck: false,
  })
}
