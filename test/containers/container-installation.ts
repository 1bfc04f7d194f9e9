import type { ClickHouseAccess } from '@sluice/clickhouse'
import { eventually } from '@sluice/harness'
import { clickhouseContainer, redisContainer } from '@sluice/harness/container-services'
import { docker } from '@sluice/harness/docker'
import { clickhouseAnswers, Ports } from '@sluice/local'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import {
  GenericContainer,
  Network,
  type StartedNetwork,
  type StartedTestContainer,
  Wait,
} from 'testcontainers'

export interface ContainerInstallationOptions {
  readonly apis: number
  readonly workers: number
  /** Additional environment variables of every worker. */
  readonly workerEnvironment: Readonly<Record<string, string>>
}

const PROJECT_ID = 'images'
/** The first health check runs after ten seconds. */
const HEALTHY_DEADLINE_MS = 60_000
/** Docker's deadline for a SIGTERM. It is longer than the deadline of the processes (`SHUTDOWN_DEADLINE_MS`). */
const STOP_DEADLINE_S = 15

/**
 * An installation in which every process is a container of its image, on a separate Docker network with names. The ports of
 * Redis, ClickHouse and the APIs are published for the test.
 */
export class ContainerInstallation {
  readonly redisUrl: string
  readonly clickhouse: ClickHouseAccess
  readonly apiUrls: readonly string[]
  #apiKey = ''
  #readKey = ''
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

  /** Starts everything, and resolves when all containers are healthy. */
  static async start(options: ContainerInstallationOptions): Promise<ContainerInstallation> {
    const ports = new Ports()
    const [redis, clickhouse, ...apis] = await Promise.all(
      Array.from({ length: options.apis + 2 }, () => ports.free()),
    )
    if (redis === undefined || clickhouse === undefined) throw new Error('no free ports')
    const started = new ContainerInstallation(await new Network().start(), { redis, clickhouse, apis })
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

  /** With the scope `read`. */
  get readKey(): string {
    return this.#readKey
  }

  /** Stops a container's process by SIGKILL. */
  async kill(name: string): Promise<void> {
    await docker(['kill', this.id(name)])
  }

  /** Stops it by SIGTERM. @returns its exit code */
  async terminate(name: string): Promise<number> {
    await docker(['stop', '--time', String(STOP_DEADLINE_S), this.id(name)], (STOP_DEADLINE_S + 5) * 1_000)
    return Number(await docker(['inspect', '--format', '{{.State.ExitCode}}', this.id(name)]))
  }

  /** Starts a stopped container. */
  async revive(name: string): Promise<void> {
    await docker(['start', this.id(name)])
  }

  /** Runs a program in a container. @returns its output */
  async exec(name: string, command: readonly string[]): Promise<string> {
    return docker(['exec', this.id(name), ...command])
  }

  id(name: string): string {
    const container = this.#containers.get(name)
    if (container === undefined) throw new Error(`container ${name} does not exist`)
    return container.getId()
  }

  /** Stops everything, and deletes containers and data. */
  async stop(): Promise<void> {
    await Promise.all([...this.#containers.values()].map((container) => container.stop()))
    await this.#network.stop()
  }

  async #startAll({ apis, workers, workerEnvironment }: ContainerInstallationOptions): Promise<void> {
    await Promise.all([
      this.#add('redis', publish(redisContainer(this.#password), 6379, this.redisUrl)),
      this.#add('clickhouse', publish(this.#clickhouse, 8123, this.clickhouse.url)),
    ])
    await eventually(() => this.#clickhouseAnswers())
    await this.#sluice('migrate')
    await this.#sluice('projects', 'create', PROJECT_ID)
    this.#apiKey = await this.#sluice('keys', 'create', '--project', PROJECT_ID)
    this.#readKey = await this.#sluice('keys', 'create', '--project', PROJECT_ID, '--scope', 'read')
    await Promise.all([
      ...names('api', apis).map((name, index) =>
        this.#add(name, publish(this.#healthy('api'), 3000, this.apiUrls[index] ?? '')),
      ),
      this.#add('query-1', this.#healthy('query').withEnvironment({ CLICKHOUSE_USERNAME: 'sluice_reader' })),
      ...names('worker', workers).map((name) =>
        this.#add(name, this.#healthy('worker').withEnvironment(workerEnvironment)),
      ),
    ])
  }

  /** Runs the command line in a separate container. @returns its standard output */
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

  /** With the user of the query process, as in docker-compose.yml. */
  get #clickhouse(): GenericContainer {
    const source = `${root}deploy/compose/clickhouse-reader.xml`
    const target = '/etc/clickhouse-server/users.d/reader.xml'
    return clickhouseContainer(this.#password)
      .withCopyFilesToContainer([{ source, target, mode: 0o444 }])
      .withEnvironment({
        CLICKHOUSE_READER_PASSWORD: this.#password,
        CLICKHOUSE_READER_GRANT: 'GRANT SELECT ON sluice.logs',
        CLICKHOUSE_READER_GRANT_OF_DEAD_LETTERS:
          'GRANT SELECT(id, project_id, failed_at, code, reason) ON sluice.dead_letters',
      })
  }

  #healthy(target: Exclude<Target, 'cli'>): GenericContainer {
    return new SluiceContainer(target)
      .withEnvironment(this.#environment)
      .withWaitStrategy(Wait.forHealthCheck().withStartupTimeout(HEALTHY_DEADLINE_MS))
  }

  /** Contains the names of the containers in their network. */
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
    const answers = await clickhouseAnswers(this.clickhouse, AbortSignal.timeout(1_000))
    if (!answers) throw new Error('ClickHouse does not accept the password yet')
  }
}

/** Publishes the port of the URL. A port chosen by Docker would change with every start. */
function publish(container: GenericContainer, inside: number, url: string): GenericContainer {
  return container.withExposedPorts({ container: inside, host: Number(new URL(url).port) })
}

function names(role: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${role}-${index + 1}`)
}

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The targets of the Dockerfile. */
export type Target = 'api' | 'query' | 'worker' | 'cli'

/** Builds an image, and keeps it for the next run, which then builds only what has changed. */
export async function buildImage(target: Target): Promise<void> {
  await GenericContainer.fromDockerfile(root)
    .withTarget(target)
    .build(imageName(target), { deleteOnExit: false })
}

/** A container of such an image, with the restrictions of docker-compose.yml: read-only, without privileges. */
class SluiceContainer extends GenericContainer {
  constructor(target: Target) {
    super(imageName(target))
    this.hostConfig.ReadonlyRootfs = true
    this.withDroppedCapabilities('ALL').withSecurityOpt('no-new-privileges:true')
  }
}

function imageName(target: Target): string {
  return `sluice-${target}:test`
}
