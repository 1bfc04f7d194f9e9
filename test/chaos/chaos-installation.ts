import { migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import { eventually, FaultProxy, pause } from '@sluice/harness'
import { command } from '@sluice/harness/clickhouse'
import type { Journal } from '@sluice/harness/journal'
import { type Accounts, readAccounts, REPORTED_WITHIN_MS } from '@sluice/harness/metrics'
import { PowerDisk } from '@sluice/harness/power-disk'
import { settle, type Settlement } from '@sluice/harness/settle'
import { startTestServices } from '@sluice/harness/test-installation'
import { provisionProject, startApi, startWorker, withRegistry, type Services } from '@sluice/local'
import { shardNames } from '@sluice/queue'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ChaosReader } from './reader.ts'
import { buildTopology, linkName, type Topology } from './schedule.ts'
import { Victim } from './victim.ts'

export interface ChaosInstallationOptions {
  readonly dataDir?: string
  readonly apis: number
  readonly workers: number
  readonly workerEnvironment?: Readonly<Record<string, string>>
  /** Whether Redis and ClickHouse have disks of their own, whose power can be cut. Needs `dataDir`. */
  readonly hasPowerCuts?: boolean
}

/** With what the metrics say of all rows, before the processes stop. */
export type ChaosSettlement = Settlement & { readonly accounts: Accounts }

const PREFIX = 'chaos'
const PROJECT_ID = 'chaos'
/** Queues, in one Redis. */
const SHARDS = 2
/** The images are sparse files. */
const DISK_SIZE = '8G'
const MEMORY_LIMIT = /<default(\/>|><max_memory_usage>\d+<\/max_memory_usage><\/default>)(?=\s*<starting>)/

/**
 * An installation in which every network link passes through a fault proxy, and every process can be killed.
 *
 * Healthy → (faults of its victims and links) → healed: from then on no process stays down or frozen, and no link holds bytes.
 */
export class ChaosInstallation {
  readonly topology: Topology
  readonly services: Services
  readonly apiKey: string
  readonly #workerEnvironment: Readonly<Record<string, string>>
  readonly #healing = new AbortController()
  readonly #stopping = new AbortController()
  readonly #victims = new Map<string, Victim>()
  readonly #links = new Map<string, FaultProxy>()
  readonly #opsUrls: string[] = []
  readonly #disks: ReadonlyMap<string, PowerDisk>

  private constructor(
    services: Services,
    disks: ReadonlyMap<string, PowerDisk>,
    apiKey: string,
    options: ChaosInstallationOptions,
  ) {
    this.#disks = disks
    this.services = services
    this.apiKey = apiKey
    this.topology = buildTopology(options.apis, options.workers)
    this.#workerEnvironment = options.workerEnvironment ?? {}
    for (const process of Object.values(services.processes)) this.#addVictim(process)
  }

  static async start(options: ChaosInstallationOptions): Promise<ChaosInstallation> {
    const disks = options.hasPowerCuts === true ? await mountDisks(options.dataDir ?? '') : new Map()
    const services = await startTestServices(options)
    try {
      await migrate(services.clickhouse, await readMigrations(migrationsFolder))
      const apiKey = await withRegistry({ redisUrl: services.redisUrl, prefix: PREFIX }, (registry) =>
        provisionProject(registry, PROJECT_ID),
      )
      const installation = new ChaosInstallation(services, disks, apiKey, options)
      const add = async ({ name, role }: Topology['processes'][number]): Promise<void> => {
        if (role === 'api') await installation.#addApi(name)
        else if (role === 'worker') await installation.#addWorker(name)
      }
      await Promise.all(installation.topology.processes.map(add))
      // The files of the configuration, which only a start needs.
      for (const disk of disks.values()) await disk.sync()
      return installation
    } catch (error) {
      await services.stop({ force: true })
      for (const disk of disks.values()) await disk.destroy()
      throw error
    }
  }

  /** The addresses of the APIs for clients, through their links. */
  get apiUrls(): string[] {
    return this.linksTo('api').map(({ url }) => url)
  }

  get healing(): AbortSignal {
    return this.#healing.signal
  }

  get victims(): readonly Victim[] {
    return [...this.#victims.values()]
  }

  get apps(): Victim[] {
    return this.victims.filter(({ process }) => process.role === 'api' || process.role === 'worker')
  }

  victim(name: string): Victim {
    return found(this.#victims.get(name), name)
  }

  linkNamed(name: string): FaultProxy {
    return found(this.#links.get(name), name)
  }

  linksTo(server: string): FaultProxy[] {
    return this.topology.links.filter(({ to }) => to === server).map(({ name }) => this.linkNamed(name))
  }

  disk(name: string): PowerDisk {
    return found(this.#disks.get(name), `the disk of ${name}`)
  }

  /** @param shiftMs the wall clock of an API or worker minus the true time */
  async shiftClock(name: string, shiftMs: number): Promise<void> {
    await writeFile(this.#clockFile(name), String(shiftMs))
  }

  /** Restarts ClickHouse with another limit of the memory of a query. Undefined: none. */
  async limitMemory(bytes: number | undefined): Promise<void> {
    const file = join(this.services.dataDir, 'clickhouse', 'users.xml')
    const profile =
      bytes === undefined ? '<default/>' : `<default><max_memory_usage>${bytes}</max_memory_usage></default>`
    // While the disk has no power, there is no file.
    await eventually(async () => {
      const text = await readFile(file, 'utf8')
      await writeFile(file, text.replace(MEMORY_LIMIT, profile), { flush: true })
    })
    await this.victim('clickhouse').kill(0)
  }

  /** Whether ClickHouse rejects rows whose service is not a valid regular expression, with a code that the worker does not know. */
  async rejectBrackets(rejects: boolean): Promise<void> {
    const change = rejects
      ? "ADD CONSTRAINT IF NOT EXISTS rule CHECK match('', service) >= 0"
      : 'DROP CONSTRAINT IF EXISTS rule'
    await eventually(() => command(this.services.clickhouse, `ALTER TABLE logs ${change}`))
  }

  /** A reader whose connections and clock have no faults. */
  openReader(): ChaosReader {
    return new ChaosReader(this.services, PREFIX)
  }

  /** Ends all faults, and resolves when every process is ready. */
  async heal(): Promise<void> {
    this.#healing.abort()
    for (const link of this.#links.values()) link.heal()
    for (const { process } of this.victims) process.kill('SIGCONT')
    // All at once. An API or worker that starts before Redis or ClickHouse fails, and is started again.
    await Promise.all(this.victims.map((victim) => victim.revive()))
  }

  /** Drains the queue, stops the APIs and workers, waits for their last inserts, and compares the journal with what is stored. */
  async settle(journal: Journal, drainDeadlineMs?: number): Promise<ChaosSettlement> {
    let accounts: Accounts | undefined
    const drained = async (): Promise<void> => {
      // What the metrics show was read before the last entries came.
      await pause(REPORTED_WITHIN_MS)
      accounts = await readAccounts(this.#opsUrls)
      await Promise.all(this.apps.map((victim) => victim.retire()))
    }
    const stores = { ...this.services, shards: shardNames(PREFIX, SHARDS) }
    const settlement = await settle(stores, journal, { drainDeadlineMs, drained })
    if (accounts === undefined) throw new Error('the metrics were not read')
    return { ...settlement, accounts }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#healing.abort()
    await this.services.stop({ force: true })
    await Promise.all([...this.#links.values()].map((link) => link.down()))
    for (const disk of this.#disks.values()) await disk.destroy()
    const left = this.victims.filter(({ process }) => process.running)
    if (left.length > 0) throw new Error(`still running: ${left.map(({ name }) => name).join(', ')}`)
  }

  async #addApi(name: string): Promise<void> {
    const { process, url, opsUrl } = await startApi(this.services.supervisor, await this.#appOptions(name))
    this.#opsUrls.push(opsUrl)
    await this.#openLink('clients', name, url)
    this.#addVictim(process)
  }

  async #addWorker(name: string): Promise<void> {
    const { supervisor, clickhouse } = this.services
    const url = await this.#openLink(name, 'clickhouse', clickhouse.url)
    const options = { ...(await this.#appOptions(name)), clickhouse: { ...clickhouse, url } }
    const { process, opsUrl } = await startWorker(supervisor, options)
    this.#opsUrls.push(opsUrl)
    this.#addVictim(process)
  }

  #clockFile(name: string): string {
    return join(this.services.dataDir, `${name}.clock`)
  }

  async #appOptions(name: string) {
    const environment = {
      NODE_OPTIONS: `--import=${import.meta.resolve('@sluice/harness/shifted-clock')}`,
      CLOCK_SHIFT_FILE: this.#clockFile(name),
      QUEUE_SHARDS: String(SHARDS),
      ...(name.startsWith('worker') && this.#workerEnvironment),
    }
    const redisUrl = await this.#openLink(name, 'redis', this.services.redisUrl)
    return { name, prefix: PREFIX, redisUrl, environment }
  }

  #addVictim(process: Victim['process']): void {
    const signals = { healing: this.#healing.signal, stopping: this.#stopping.signal }
    this.#victims.set(process.name, new Victim(process, signals))
  }

  /** @returns the target's URL, through the link */
  async #openLink(from: string, to: string, targetUrl: string): Promise<string> {
    const link = await FaultProxy.open(targetUrl)
    this.#links.set(linkName(from, to), link)
    return link.url
  }
}

async function mountDisks(dataDir: string): Promise<Map<string, PowerDisk>> {
  const disks = new Map<string, PowerDisk>()
  for (const name of ['redis', 'clickhouse'])
    disks.set(name, await PowerDisk.mount(join(dataDir, `${name}.img`), join(dataDir, name), DISK_SIZE))
  return disks
}

function found<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`${name} does not exist`)
  return value
}
