import { mkdir } from 'node:fs/promises'
import { ProcessError, Supervisor } from '@sluice/local'
import { LoadProcess } from './load/load-process.ts'
import { measureDisk, type DiskTimes } from './measure/disk.ts'
import { redisInfo } from './measure/redis-memory.ts'
import { Store } from './measure/store.ts'
import type { BenchOptions } from './options.ts'
import { measureCell, measureForProfile } from './phases/measure-cell.ts'
import { describeMachine, describeVersions, type Versions } from './report/machine.ts'
import { compare, method, type Report, type ScenarioReport, type SystemReport } from './report/report.ts'
import type { Scenario } from './scenarios.ts'
import { startSystem } from './systems/start-system.ts'
import type { System, SystemName } from './systems/system.ts'

/** The entries' seed: every system of every run gets the same. */
const SEED = 42

export interface BenchDependencies {
  readonly options: BenchOptions
  /** A folder for CPU profiles. */
  readonly profileFolder: string
  readonly note: (text: string) => void
}

/**
 * One run of the benchmark: each scenario with each system in turn, each freshly started, and gone before the next.
 *
 * Running → (`interrupt`) stopping → over.
 */
export class Bench {
  readonly #deps: BenchDependencies
  readonly #interrupted = new AbortController()
  #versions: Versions = describeVersions()
  #running: Supervisor | undefined

  constructor(dependencies: BenchDependencies) {
    this.#deps = dependencies
  }

  /** Ends what runs; `run` then throws. */
  interrupt(): void {
    this.#interrupted.abort(new Error('interrupted'))
    this.#running?.stop({ force: true }).catch(() => undefined)
  }

  async run(): Promise<Report> {
    const { options } = this.#deps
    const at = new Date().toISOString()
    const disk = await this.#measureDisk()
    const scenarios: ScenarioReport[] = []
    for (const scenario of options.scenarios) {
      const systems: SystemReport[] = []
      for (const name of options.systems) systems.push(await this.#measureOrExplain(scenario, name))
      scenarios.push(compare(scenario, systems))
    }
    return {
      at,
      machine: describeMachine(),
      disk,
      versions: this.#versions,
      windowS: options.windowMs / 1_000,
      corpus: options.corpus !== undefined,
      method,
      scenarios,
    }
  }

  /** The disk that the systems' data will be on. */
  async #measureDisk(): Promise<DiskTimes> {
    this.#deps.note('the disk')
    const supervisor = await Supervisor.open()
    this.#running = supervisor
    try {
      return await measureDisk(supervisor.dataDir)
    } finally {
      await supervisor.stop()
    }
  }

  /** One system that cannot be measured does not cost the figures of the others. */
  async #measureOrExplain(scenario: Scenario, name: SystemName): Promise<SystemReport> {
    this.#deps.note(`${scenario.name}, ${name}`)
    try {
      return await this.#measure(scenario, name)
    } catch (error) {
      this.#interrupted.signal.throwIfAborted()
      const message = error instanceof Error ? error.message : String(error)
      this.#deps.note(`  not measured: ${message}`)
      // The log goes with the system's data.
      if (error instanceof ProcessError) for (const line of error.log) this.#deps.note(`  | ${line}`)
      return { system: name, error: message }
    }
  }

  async #measure(scenario: Scenario, name: SystemName): Promise<SystemReport> {
    const { profiledRole: role } = this.#deps.options
    const folder = this.#deps.profileFolder
    if (role !== undefined) await mkdir(folder, { recursive: true })
    const supervisor = await Supervisor.open()
    this.#running = supervisor
    const load = new LoadProcess()
    try {
      this.#interrupted.signal.throwIfAborted()
      const profile = role === undefined ? undefined : { role, folder }
      const system = await startSystem(name, { supervisor, profile })
      return await this.#measureSystem(scenario, system, load)
    } finally {
      await load.stop()
      await supervisor.stop()
      if (role !== undefined) this.#deps.note(`  profiles are in ${folder}`)
    }
  }

  async #measureSystem(scenario: Scenario, system: System, load: LoadProcess): Promise<SystemReport> {
    const { options, note } = this.#deps
    const store = new Store(system.clickhouse)
    try {
      await this.#readVersions(system, store)
      const { url, apiKey } = system
      const { requests } = scenario
      const entries = await load.prepare({ url, apiKey, requests, corpus: options.corpus, seed: SEED })
      const cell = {
        system,
        scenario,
        store,
        load,
        windowMs: options.windowMs,
        trialsMax: options.trialsMax,
        signal: this.#interrupted.signal,
        note: (text: string) => note(`  ${text}`),
      }
      const result =
        options.profiledRole === undefined
          ? await measureCell(cell, options.burstEntriesMax)
          : await measureForProfile(cell)
      const warnings = [...system.remarks, ...result.warnings]
      return { system: system.name, entries, ...result, warnings }
    } finally {
      await store.close()
    }
  }

  async #readVersions({ redisUrl }: System, store: Store): Promise<void> {
    const [row] = await store.select<{ version: string }>('SELECT version() AS version')
    this.#versions = { ...this.#versions, ...(row === undefined ? {} : { clickhouse: row.version }) }
    if (redisUrl === undefined) return
    const redis = (await redisInfo(redisUrl, 'server')).get('redis_version')
    this.#versions = { ...this.#versions, ...(redis === undefined ? {} : { redis }) }
  }
}
