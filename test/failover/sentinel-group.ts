import { eventually } from '@sluice/harness'
import type { Supervisor } from '@sluice/local'
import {
  durable,
  PASSWORD,
  queryServer,
  startRedisServer,
  type TestServer,
} from '../scaling/redis-servers.ts'
import { type RedisGroup, replicaFaultsOf } from './redis-group.ts'
import { Sentinels } from './sentinels.ts'

/** The replicas and the Sentinels have users of their own, so that a primary can be cut off from them and not from clients. */
const PEERS = ['replica', 'sentinel'] as const

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
  readonly replicaFaults = replicaFaultsOf(() => this.#replica())
  readonly #servers: readonly TestServer[]
  readonly #sentinels: Sentinels

  private constructor(servers: readonly TestServer[], sentinels: Sentinels) {
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
    const sentinels = await Sentinels.start(supervisor, primary.port, 'sentinel')
    const group = new SentinelGroup([primary, ...followers], sentinels)
    await group.formed()
    return group
  }

  get url(): string {
    return this.#sentinels.url
  }

  async #primary(): Promise<TestServer> {
    const port = await this.#sentinels.primaryPort()
    return this.#find((server) => server.port === port)
  }

  async #replica(): Promise<TestServer> {
    const port = await this.#sentinels.primaryPort()
    return this.#find((server) => server.port !== port)
  }

  /** Waits until one server is the primary and all others have everything that it has. */
  async formed(): Promise<void> {
    await eventually(async () => {
      const port = await this.#sentinels.primaryPort()
      await this.#sentinels.requireFormed(this.#servers.length - 1)
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
    const port = await this.#sentinels.primaryPort()
    await this.#sentinels.failOver()
    await this.#replaced(port)
  }

  /** Cuts the primary off from its replicas and from the Sentinels, but not from clients, until another one has taken over. */
  async #isolatePrimary(): Promise<void> {
    const port = await this.#sentinels.primaryPort()
    await queryServer(port, async (redis) => {
      for (const user of PEERS) await redis.call('ACL', 'SETUSER', user, 'off')
      for (const user of PEERS) await redis.call('CLIENT', 'KILL', 'USER', user)
    })
    await this.#replaced(port)
    await queryServer(port, async (redis) => {
      for (const user of PEERS) await redis.call('ACL', 'SETUSER', user, 'on')
    })
  }

  async #replaced(port: number): Promise<void> {
    await eventually(async () => {
      if ((await this.#sentinels.primaryPort()) === port) throw new Error('the primary is not replaced yet')
    })
  }

  #find(isWanted: (server: TestServer) => boolean): TestServer {
    const server = this.#servers.find(isWanted)
    if (server === undefined) throw new Error('the group has no such server')
    return server
  }
}
