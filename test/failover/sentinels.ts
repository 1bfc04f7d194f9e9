import type { Supervisor } from '@sluice/local'
import type { Redis } from 'ioredis'
import { PASSWORD, queryServer, startRedisServer } from '../scaling/redis-servers.ts'

const COUNT = 3
const NAME = 'sluice'

/** Three Sentinels of one primary. */
export class Sentinels {
  readonly #ports: readonly number[]

  private constructor(ports: readonly number[]) {
    this.#ports = ports
  }

  /** @param authUser the user of the servers as whom the Sentinels connect */
  static async start(supervisor: Supervisor, primaryPort: number, authUser: string): Promise<Sentinels> {
    const lines = [
      `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} 2`,
      `sentinel auth-user ${NAME} ${authUser}`,
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
    return new Sentinels(await Promise.all(Array.from({ length: COUNT }, start)))
  }

  /** The address of the primary, for the processes of Sluice. */
  get url(): string {
    return `redis-sentinel://:${PASSWORD}@${this.#ports.map((port) => `127.0.0.1:${port}`).join(',')}/${NAME}`
  }

  /** The port of the current primary. */
  async primaryPort(): Promise<number> {
    const address = await this.#queryFirst((redis) => redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME))
    return Number((address as string[])[1])
  }

  /** Makes the Sentinels replace the primary. Resolves before they have. */
  async failOver(): Promise<void> {
    await this.#queryFirst((redis) => redis.call('SENTINEL', 'FAILOVER', NAME))
  }

  /** @throws unless all Sentinels know each other and this number of replicas */
  async requireFormed(replicaCount: number): Promise<void> {
    for (const port of this.#ports) {
      const [sentinels, replicas] = await querySentinel(port, (redis) =>
        Promise.all(
          ['SENTINELS', 'REPLICAS'].map((what) => redis.call('SENTINEL', what, NAME) as Promise<unknown[]>),
        ),
      )
      if (sentinels?.length !== COUNT - 1 || replicas?.length !== replicaCount)
        throw new Error('the Sentinels do not know each other and the replicas yet')
    }
  }

  #queryFirst<T>(query: (redis: Redis) => Promise<T>): Promise<T> {
    return querySentinel(this.#ports[0] ?? 0, query)
  }
}

function querySentinel<T>(port: number, query: (redis: Redis) => Promise<T>): Promise<T> {
  return queryServer(port, query, {
    password: '',
    commandTimeout: 1_000,
    retryStrategy: () => null,
    enableReadyCheck: false,
  })
}
