import { mkdir } from 'node:fs/promises'
import { ProcessError, Supervisor } from '@sluice/local'
import { LoadProcess } from './load/load-process.ts'
import type { Scenario } from './load/scenarios.ts'
import { type DiskTimes, measureDisk } from './measure/disk.ts'
import { redisInfo } from './measure/redis-info.ts'
import { Store } from './measure/store.ts'
import type { BenchOptions } from './options.ts'
import { measureForProfile, measureScenario } from './phases/measure-scenario.ts'
import {
  compare,
  describeMachine,
  describeVersions,
  method,
  type Report,
  type ScenarioReport,
  type SystemReport,
  type Versions,
} from './report/report.ts'
import { startDirect } from './systems/direct.ts'
import { startJobPerEntry } from './systems/job-per-entry.ts'
import { startReplicatedSluice, startSluice } from './systems/sluice.ts'
import type { System, SystemName, SystemOptions } from './systems/system.ts'

/** The seed of the entries. Every system in every run gets the same entries. */
const SEED = 42

const starters: Readonly<Record<SystemName, (options: SystemOptions) => Promise<System>>> = {
  sluice: startSluice,
  'job-per-entry': startJobPerEntry,
  direct: startDirect,
  'sluice-1-replica': startReplicatedSluice(1),
  'sluice-2-replicas': startReplicatedSluice(2),
}

export interface BenchDependencies {
  readonly options: BenchOptions
  /** The folder for CPU profiles. */
  readonly profileFolder: string
  /** Reports progress to the user. */
  readonly log: (text: string) => void
}

/**
 * One run of the benchmark. Measures each scenario with each system, one after the other. Each system is freshly started
 * and has stopped before the next one starts.
 *
 * Running → (`interrupt`) stopping → done.
 */
export class Bench {
  readonly #deps: BenchDependencies
  readonly #interrupted = new AbortController()
  #versions: Versions = describeVersions()
  #running: Supervisor | undefined

  constructor(dependencies: BenchDependencies) {
    this.#deps = dependencies
  }

  /** Stops all running processes. `run` then throws. */
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
      for (const name of options.systems) systems.push(await this.#measureOrReportError(scenario, name))
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

  /** Measures the disk that will hold the data of the systems. */
  async #measureDisk(): Promise<DiskTimes> {
    this.#deps.log('disk')
    const supervisor = await Supervisor.open()
    this.#running = supervisor
    try {
      return await measureDisk(supervisor.dataDir)
    } finally {
      await supervisor.stop()
    }
  }

  /** A system that cannot be measured must not prevent the measurement of the others. */
  async #measureOrReportError(scenario: Scenario, name: SystemName): Promise<SystemReport> {
    this.#deps.log(`${scenario.name}, ${name}`)
    try {
      return await this.#measure(scenario, name)
    } catch (error) {
      this.#interrupted.signal.throwIfAborted()
      const message = error instanceof Error ? error.message : String(error)
      this.#deps.log(`  not measured: ${message}`)
      // The log file is deleted together with the system's data.
      if (error instanceof ProcessError) for (const line of error.log) this.#deps.log(`  | ${line}`)
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
      const system = await starters[name]({ supervisor, profile })
      return await this.#measureSystem(scenario, system, load)
    } finally {
      await load.stop()
      await supervisor.stop()
      if (role !== undefined) this.#deps.log(`  profiles are in ${folder}`)
    }
  }

  async #measureSystem(scenario: Scenario, system: System, load: LoadProcess): Promise<SystemReport> {
    const { options, log } = this.#deps
    const store = new Store(system.clickhouse)
    try {
      await this.#readVersions(system, store)
      const { url, apiKey } = system
      const { requests } = scenario
      const entries = await load.prepare({ url, apiKey, requests, corpus: options.corpus, seed: SEED })
      const context = {
        system,
        scenario,
        store,
        load,
        windowMs: options.windowMs,
        trialsMax: options.trialsMax,
        ratePerS: options.ratePerS,
        signal: this.#interrupted.signal,
        log: (text: string) => log(`  ${text}`),
      }
      const result =
        options.profiledRole === undefined
          ? await measureScenario(context, options.burstEntriesMax)
          : await measureForProfile(context)
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
