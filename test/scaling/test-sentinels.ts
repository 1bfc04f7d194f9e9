import type { Supervisor } from '@sluice/local'
import type { Redis } from 'ioredis'
import { PASSWORD, queryServer, startRedisServer } from './redis-servers.ts'

const COUNT = 3
const NAME = 'sluice'

export interface TestSentinelsOptions {
  /** Of the Sentinels themselves. Default: none. */
  readonly password?: string
  readonly failoverTimeoutMs: number
  /** The user of the servers as whom the Sentinels connect. Default: the default user. */
  readonly authUser?: string
}

/** Three Sentinels of one primary. */
export class TestSentinels {
  readonly #ports: readonly number[]
  readonly #password: string

  private constructor(ports: readonly number[], password: string) {
    this.#ports = ports
    this.#password = password
  }

  static async start(
    supervisor: Supervisor,
    primaryPort: number,
    { password = '', failoverTimeoutMs, authUser }: TestSentinelsOptions,
  ): Promise<TestSentinels> {
    const lines = [
      ...(password === '' ? [] : [`requirepass ${password}`]),
      `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} 2`,
      ...(authUser === undefined ? [] : [`sentinel auth-user ${NAME} ${authUser}`]),
      `sentinel auth-pass ${NAME} ${PASSWORD}`,
      `sentinel down-after-milliseconds ${NAME} 1000`,
      `sentinel failover-timeout ${NAME} ${failoverTimeoutMs}`,
    ]
    const start = async (_: unknown, i: number): Promise<number> => {
      const port = await supervisor.ports.free()
      await startRedisServer(supervisor, `sentinel-${i + 1}`, [`port ${port}`, ...lines], {
        port,
        args: ['--sentinel'],
        isReady: async () => (await querySentinel(port, password, (redis) => redis.ping())) === 'PONG',
      })
      return port
    }
    return new TestSentinels(await Promise.all(Array.from({ length: COUNT }, start)), password)
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
      const [sentinels, replicas] = await querySentinel(port, this.#password, (redis) =>
        Promise.all(
          ['SENTINELS', 'REPLICAS'].map((what) => redis.call('SENTINEL', what, NAME) as Promise<unknown[]>),
        ),
      )
      if (sentinels?.length !== COUNT - 1 || replicas?.length !== replicaCount)
        throw new Error('the Sentinels do not know each other and the replicas yet')
    }
  }

  #queryFirst<T>(query: (redis: Redis) => Promise<T>): Promise<T> {
    return querySentinel(this.#ports[0] ?? 0, this.#password, query)
  }
}

function querySentinel<T>(port: number, password: string, query: (redis: Redis) => Promise<T>): Promise<T> {
  return queryServer(port, query, {
    password,
    commandTimeout: 1_000,
    retryStrategy: () => null,
    enableReadyCheck: false,
  })
}
