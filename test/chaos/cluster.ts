import { startApi, startWorker, type Services } from '@sluice/local'
import { Registry } from '@sluice/projects'
import { connectRedis, migrate, readMigrations } from '@sluice/runtime'
import { migrationsFolder, redisNames } from '@sluice/schema'
import { startTestServices } from '../test-services.ts'
import { Link } from './link.ts'
import { within } from './pause.ts'
import { buildTopology, linkName, type Topology } from './topology.ts'
import { Victim } from './victim.ts'

export interface ClusterOptions {
  readonly dataDir: string
  readonly apis: number
  readonly workers: number
  /** More of every worker's environment. */
  readonly workerEnvironment?: Readonly<Record<string, string>>
}

const PREFIX = 'chaos'
const PROJECT_ID = 'chaos'
const REGISTER_DEADLINE_MS = 10_000

/**
 * Redis, ClickHouse, APIs and workers on this machine, none of which reaches another but through a link of its own.
 *
 * Whole → (faults on its victims and links) → healed: from then on nothing is kept down, frozen or held.
 */
export class Cluster {
  readonly topology: Topology
  readonly services: Services
  readonly apiKey: string
  readonly names = redisNames(PREFIX)
  readonly #workerEnvironment: Readonly<Record<string, string>>
  readonly #healing = new AbortController()
  readonly #stopping = new AbortController()
  readonly #victims = new Map<string, Victim>()
  readonly #links = new Map<string, Link>()

  private constructor(services: Services, apiKey: string, options: ClusterOptions) {
    this.services = services
    this.apiKey = apiKey
    this.topology = buildTopology(options.apis, options.workers)
    this.#workerEnvironment = options.workerEnvironment ?? {}
    for (const process of Object.values(services.processes)) this.#addVictim(process)
  }

  static async start(options: ClusterOptions): Promise<Cluster> {
    const services = await startTestServices({ dataDir: options.dataDir })
    try {
      await migrate(services.clickhouse, await readMigrations(migrationsFolder))
      const cluster = new Cluster(services, await makeApiKey(services.redisUrl), options)
      const { processes } = cluster.topology
      const apis = processes.filter(({ role }) => role === 'api')
      const workers = processes.filter(({ role }) => role === 'worker')
      await Promise.all([
        ...apis.map(({ name }) => cluster.#addApi(name)),
        ...workers.map(({ name }) => cluster.addWorker(name)),
      ])
      return cluster
    } catch (error) {
      await services.stop({ force: true })
      throw error
    }
  }

  /** The addresses of the APIs' links, for clients. */
  get apiUrls(): string[] {
    return [...this.#links.values()]
      .filter(({ name }) => name.startsWith('clients>'))
      .map(({ port }) => `http://127.0.0.1:${port}`)
  }

  /** Aborted when the faults end. */
  get healing(): AbortSignal {
    return this.#healing.signal
  }

  get victims(): readonly Victim[] {
    return [...this.#victims.values()]
  }

  victim(name: string): Victim {
    return found(this.#victims.get(name), name)
  }

  link(from: string, to: string): Link {
    return this.linkNamed(linkName(from, to))
  }

  linkNamed(name: string): Link {
    return found(this.#links.get(name), name)
  }

  /** Starts one more worker, with links of its own. */
  async addWorker(name: string, environment: Readonly<Record<string, string>> = {}): Promise<Victim> {
    const { supervisor, redisUrl, clickhouse } = this.services
    const toRedis = await this.#openLink(name, 'redis', redisUrl)
    const toClickHouse = await this.#openLink(name, 'clickhouse', clickhouse.url)
    const { process } = await startWorker(supervisor, {
      name,
      prefix: PREFIX,
      redisUrl: toRedis,
      clickhouse: { ...clickhouse, url: toClickHouse },
      environment: { ...this.#workerEnvironment, ...environment },
    })
    return this.#addVictim(process)
  }

  /** Ends all faults, and resolves when everything is up. */
  async heal(): Promise<void> {
    this.#healing.abort()
    for (const link of this.#links.values()) link.heal()
    for (const { process } of this.victims) process.kill('SIGCONT')
    // Redis and ClickHouse among them: the others are not ready without them, but are started again if need be.
    await Promise.all(this.victims.map((victim) => victim.revive()))
  }

  /** Ends everything, at once. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#healing.abort()
    await this.services.stop({ force: true })
    await Promise.all([...this.#links.values()].map((link) => link.close()))
    const left = this.victims.filter(({ process }) => process.running)
    if (left.length > 0) throw new Error(`still running: ${left.map(({ name }) => name).join(', ')}`)
  }

  async #addApi(name: string): Promise<void> {
    const { supervisor, redisUrl } = this.services
    const toRedis = await this.#openLink(name, 'redis', redisUrl)
    const { process, url } = await startApi(supervisor, { name, prefix: PREFIX, redisUrl: toRedis })
    await this.#openLink('clients', name, url)
    this.#addVictim(process)
  }

  #addVictim(process: Victim['process']): Victim {
    const victim = new Victim(process, {
      healing: this.#healing.signal,
      stopping: this.#stopping.signal,
    })
    this.#victims.set(victim.name, victim)
    return victim
  }

  /** @returns the target's URL, by way of the link */
  async #openLink(from: string, to: string, targetUrl: string): Promise<string> {
    const url = new URL(targetUrl)
    const link = await Link.open(linkName(from, to), Number(url.port))
    this.#links.set(link.name, link)
    url.port = String(link.port)
    // A URL object adds a slash that the address did not have.
    return url.href.replace(/\/$/, '')
  }
}

function found<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`there is no ${name}`)
  return value
}

async function makeApiKey(redisUrl: string): Promise<string> {
  const redis = connectRedis(redisUrl, { failFast: false })
  redis.on('error', () => undefined)
  try {
    const registry = new Registry(redis, redisNames(PREFIX).registryPrefix)
    await within(REGISTER_DEADLINE_MS, 'making the project', registry.createProject(PROJECT_ID))
    const { key } = await within(REGISTER_DEADLINE_MS, 'making the key', registry.createKey(PROJECT_ID))
    return key
  } finally {
    redis.disconnect()
  }
}
