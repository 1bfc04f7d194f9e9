import { randomBytes } from 'node:crypto'
import { askClickHouseVersion, docker, freePort } from '@sluice/local'
import type { ClickHouseAccess } from '@sluice/runtime'
import {
  type GenericContainer,
  Network,
  type StartedNetwork,
  type StartedTestContainer,
  Wait,
} from 'testcontainers'
import { eventually } from '../support.ts'
import { clickhouseContainer, redisContainer } from './official-images.ts'
import { SluiceContainer } from './sluice-images.ts'

export interface PrivateNetworkOptions {
  readonly apis: number
  readonly workers: number
  /** More of every worker's environment. */
  readonly workerEnvironment: Readonly<Record<string, string>>
}

const PROJECT_ID = 'images'
const SERVER_DEADLINE_MS = 60_000
/** A first health check comes after ten seconds. */
const HEALTHY_DEADLINE_MS = 60_000
/** Docker's own deadline for a SIGTERM, above the one that the processes have (`SHUTDOWN_DEADLINE_MS`). */
const STOP_DEADLINE_S = 15

/**
 * Redis, ClickHouse, APIs and workers, each in a container of its image, on a network of their own, where they know each
 * other by name. For the test, the ports of the first three are published as well.
 */
export class PrivateNetwork {
  readonly redisUrl: string
  readonly clickhouse: ClickHouseAccess
  readonly apiUrls: readonly string[]
  #apiKey = ''
  readonly #password: string
  readonly #network: StartedNetwork
  readonly #containers = new Map<string, StartedTestContainer>()

  private constructor(network: StartedNetwork, ports: { redis: number; clickhouse: number; apis: number[] }) {
    this.#network = network
    this.#password = randomBytes(18).toString('hex')
    this.redisUrl = `redis://:${this.#password}@127.0.0.1:${ports.redis}`
    this.clickhouse = {
      url: `http://127.0.0.1:${ports.clickhouse}`,
      username: 'sluice',
      password: this.#password,
      database: 'sluice',
    }
    this.apiUrls = ports.apis.map((port) => `http://127.0.0.1:${port}`)
  }

  /** Starts everything, and resolves when Docker says that it is healthy. */
  static async start(options: PrivateNetworkOptions): Promise<PrivateNetwork> {
    const [redis, clickhouse, ...apis] = await Promise.all(
      Array.from({ length: options.apis + 2 }, () => freePort()),
    )
    if (redis === undefined || clickhouse === undefined) throw new Error('no ports')
    const started = new PrivateNetwork(await new Network().start(), { redis, clickhouse, apis })
    try {
      await started.#startAll(options)
      return started
    } catch (error) {
      await started.stop()
      throw error
    }
  }

  get apiKey(): string {
    return this.#apiKey
  }

  /** Ends a container's process by SIGKILL. */
  async kill(name: string): Promise<void> {
    await docker(['kill', this.id(name)])
  }

  /** Ends it by SIGTERM. @returns its exit code */
  async terminate(name: string): Promise<number> {
    await docker(['stop', '--time', String(STOP_DEADLINE_S), this.id(name)], (STOP_DEADLINE_S + 5) * 1_000)
    return Number(await docker(['inspect', '--format', '{{.State.ExitCode}}', this.id(name)]))
  }

  /** Starts one again that has ended. */
  async revive(name: string): Promise<void> {
    await docker(['start', this.id(name)])
  }

  /** Cuts it off from all others, with whatever is under way. */
  async cutOff(name: string): Promise<void> {
    await docker(['network', 'disconnect', this.#network.getName(), this.id(name)])
  }

  async reconnect(name: string): Promise<void> {
    await docker(['network', 'connect', '--alias', name, this.#network.getName(), this.id(name)])
  }

  /** Runs a program in a container. @returns what it wrote */
  async exec(name: string, command: readonly string[]): Promise<string> {
    return docker(['exec', this.id(name), ...command])
  }

  id(name: string): string {
    const container = this.#containers.get(name)
    if (container === undefined) throw new Error(`there is no container ${name}`)
    return container.getId()
  }

  /** Ends everything and removes it, the data too. */
  async stop(): Promise<void> {
    await Promise.all([...this.#containers.values()].map((container) => container.stop()))
    await this.#network.stop()
  }

  async #startAll({ apis, workers, workerEnvironment }: PrivateNetworkOptions): Promise<void> {
    await Promise.all([
      this.#add('redis', publish(redisContainer(this.#password), 6379, this.redisUrl)),
      this.#add('clickhouse', publish(clickhouseContainer(this.#password), 8123, this.clickhouse.url)),
    ])
    await eventually(SERVER_DEADLINE_MS, () => this.#clickhouseAnswers())
    await this.#sluice('migrate')
    await this.#sluice('projects', 'create', PROJECT_ID)
    this.#apiKey = await this.#sluice('keys', 'create', '--project', PROJECT_ID)
    await Promise.all([
      ...names('api', apis).map((name, index) =>
        this.#add(name, publish(this.#healthy('api'), 3000, this.apiUrls[index] ?? '')),
      ),
      ...names('worker', workers).map((name) =>
        this.#add(name, this.#healthy('worker').withEnvironment(workerEnvironment)),
      ),
    ])
  }

  /** Runs the command line in a container of its own. @returns what it wrote to its standard output */
  async #sluice(...args: readonly string[]): Promise<string> {
    const container = new SluiceContainer('cli')
      .withEnvironment(this.#environment)
      .withNetwork(this.#network)
      .withCommand([...args])
      .withWaitStrategy(Wait.forOneShotStartup())
    const started = await container.start()
    try {
      return await docker(['logs', started.getId()])
    } finally {
      await started.stop()
    }
  }

  #healthy(target: 'api' | 'worker'): GenericContainer {
    return new SluiceContainer(target)
      .withEnvironment(this.#environment)
      .withWaitStrategy(Wait.forHealthCheck().withStartupTimeout(HEALTHY_DEADLINE_MS))
  }

  /** By the names that the containers have for each other. */
  get #environment(): Record<string, string> {
    return {
      REDIS_URL: `redis://:${this.#password}@redis:6379`,
      CLICKHOUSE_URL: 'http://clickhouse:8123',
      CLICKHOUSE_USERNAME: this.clickhouse.username,
      CLICKHOUSE_PASSWORD: this.#password,
    }
  }

  async #add(name: string, container: GenericContainer): Promise<void> {
    this.#containers.set(name, await container.withNetwork(this.#network).withNetworkAliases(name).start())
  }

  async #clickhouseAnswers(): Promise<void> {
    const version = await askClickHouseVersion(this.clickhouse, AbortSignal.timeout(1_000))
    if (version === undefined) throw new Error('ClickHouse does not let us in')
  }
}

/** On the port of the URL: one that Docker chose itself would be another one after each start. */
function publish(container: GenericContainer, inside: number, url: string): GenericContainer {
  return container.withExposedPorts({ container: inside, host: Number(new URL(url).port) })
}

function names(role: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${role}-${index + 1}`)
}
