import { concernsDataFolder } from './data-folder.ts'
import { type Installation, startInstallation } from './installation.ts'
import { keepAlive } from './keep-alive.ts'
import { optionsFrom, readLocalFile, writeLocalFile } from './local-file.ts'
import { probePort } from './ports.ts'
import type { Reporter } from './reporter.ts'
import type { StartSettings } from './start-settings.ts'
import { ProcessError, stopAllDeadlineMs } from './supervised-process.ts'
import { DataDirectoryBusyError, Supervisor } from './supervisor.ts'

export interface LocalRunOptions extends Omit<StartSettings, 'dataDir'> {
  readonly dataDir: string
  readonly isDefaultDataDir: boolean
  readonly reporter: Reporter
  /** 0 ≤ random < 1 */
  readonly random: () => number
}

/** The run cannot continue. The message is meant for the user. */
class CannotRunError extends Error {
  override name = 'CannotRunError'
}

/**
 * One Ctrl-C can cause two signals: the terminal sends one to the whole foreground group, and npm forwards its own. No user
 * presses the keys twice within this time.
 */
const SAME_INTERRUPT_MS = 200

/** How long the end takes after everything was killed. */
const KILL_ALL_DEADLINE_MS = 1_000

const DEFAULT_PORT = 3_000
/** On Linux, only root may use the ports below it. */
const UNPRIVILEGED_PORT_MIN = 1_024
const PORT_MAX = 65_535

/**
 * One run of `npm start`.
 *
 * Starting → ready → stopping → stopped. `interrupt` stops the run; during stopping it kills the remaining processes. A
 * process that keeps dying, or a failed start, stops the run too, with exit code 1.
 *
 * An interrupted run ends within a deadline, whatever does not answer or is in progress, such as the installation of Redis. The
 * caller must then exit: the watchdog stops processes that are left.
 */
export class LocalRun {
  readonly #options: LocalRunOptions
  readonly #interrupted = Promise.withResolvers<undefined>()
  readonly #deadline = Promise.withResolvers<void>()
  #supervisor: Supervisor | undefined
  #interruptedAtMs: number | undefined
  #forced = false

  constructor(options: LocalRunOptions) {
    this.#options = options
  }

  /** Stops everything in order. A second call kills everything. */
  interrupt(): void {
    const nowMs = performance.now()
    if (this.#interruptedAtMs === undefined) {
      this.#interruptedAtMs = nowMs
      this.#options.reporter.blankLine()
      this.#options.reporter.note('Stopping … Press Ctrl-C again to kill all processes.')
      this.#interrupted.resolve(undefined)
      this.#supervisor?.stop().catch(() => undefined)
      this.#endWithin(stopAllDeadlineMs)
    } else if (nowMs - this.#interruptedAtMs > SAME_INTERRUPT_MS && !this.#forced) {
      this.#forced = true
      this.#supervisor?.stop({ force: true }).catch(() => undefined)
      this.#endWithin(KILL_ALL_DEADLINE_MS)
    }
  }

  #endWithin(deadlineMs: number): void {
    setTimeout(() => this.#deadline.resolve(), deadlineMs)
  }

  /** Runs until it is interrupted or cannot continue. @returns the exit code */
  async run(): Promise<number> {
    const kept = this.#startAndKeep().catch((error: unknown) => error)
    const failure = await Promise.race([kept, this.#interrupted.promise])
    const failed = failure !== undefined && this.#interruptedAtMs === undefined
    if (failed) this.#explain(failure)
    const stoppingAtMs = performance.now()
    if (this.#supervisor === undefined) return failed ? 1 : 0
    await Promise.race([this.#supervisor.stop(), this.#deadline.promise])
    if (this.#supervisor.processes.length === 0) return failed ? 1 : 0
    if (this.#forced) this.#options.reporter.warn('Killed all processes. Accepted entries are not lost.')
    else this.#options.reporter.done('Stopped', performance.now() - (this.#interruptedAtMs ?? stoppingAtMs))
    return failed || this.#forced ? 1 : 0
  }

  async #startAndKeep(): Promise<void> {
    const { reporter, random } = this.#options
    const installation = await this.#start()
    const kept = Object.values(installation.processes).map((each) =>
      keepAlive(installation.supervisor, each, { report: reporter, random }),
    )
    await Promise.race([this.#interrupted.promise, Promise.all(kept)])
  }

  async #start(): Promise<Installation> {
    const { dataDir, isDefaultDataDir, reporter, host, api, worker } = this.#options
    if (process.platform === 'win32') {
      throw new CannotRunError(
        'The embedded ClickHouse does not run on Windows. Use WSL, its Linux subsystem.',
      )
    }
    const supervisor = await Supervisor.open({ dataDir })
    this.#supervisor = supervisor
    if (this.#interruptedAtMs !== undefined) throw new CannotRunError('interrupted')
    if (supervisor.leftovers > 0) {
      reporter.note(`Stopped ${supervisor.leftovers} processes of an earlier run`)
    }
    const port = await this.#apiPort()
    const earlier = readLocalFile(dataDir)
    const { opsPorts, ...options } = earlier === undefined ? { opsPorts: undefined } : optionsFrom(earlier)
    const installation = await startInstallation({
      ...options,
      supervisor,
      progress: reporter,
      api: { host, port, opsPort: opsPorts?.api, environment: api },
      worker: { opsPort: opsPorts?.worker, environment: worker },
    })
    writeLocalFile(dataDir, installation)
    reporter.welcome(installation, { dataDir: supervisor.dataDir, isDefaultDataDir })
    return installation
  }

  async #apiPort(): Promise<number | undefined> {
    const { host, port } = this.#options
    const probe = await probePort(port, host)
    if ('port' in probe) return port === 0 ? undefined : port
    throw new CannotRunError(describePort(host, port, probe.code))
  }

  #explain(failure: unknown): void {
    const { reporter, dataDir } = this.#options
    if (failure instanceof DataDirectoryBusyError) {
      const earlier = readLocalFile(dataDir)
      const address = earlier === undefined ? '' : ` (API: ${earlier.apiUrl})`
      reporter.fail(
        `Sluice is already running on ${dataDir}${address}. Stop it first, or set SLUICE_DATA_DIR to another folder.`,
      )
    } else if (failure instanceof ProcessError) {
      reporter.fail(failure.message, [
        `Log file: ${failure.logFile}`,
        ...failure.log.map((line) => `| ${line}`),
      ])
    } else if (concernsDataFolder(failure, dataDir)) {
      reporter.fail(
        `The data folder ${dataDir} cannot be used (${failure.message}). Set SLUICE_DATA_DIR to a folder that you may write to.`,
      )
    } else if (failure instanceof CannotRunError) {
      reporter.fail(failure.message)
    } else {
      reporter.fail(failure instanceof Error ? failure.message : String(failure))
    }
  }
}

/** Why the API cannot listen, and what to do. */
export function describePort(host: string, port: number, code: string): string {
  if (code === 'EADDRINUSE') {
    const next = port < UNPRIVILEGED_PORT_MIN || port >= PORT_MAX ? DEFAULT_PORT : port + 1
    return `Port ${port} is used by another program. Choose another: PORT=${next} npm start`
  }
  if (code === 'EACCES' && port < UNPRIVILEGED_PORT_MIN) {
    return `Port ${port} needs the rights of root. Choose a port from ${UNPRIVILEGED_PORT_MIN}: PORT=${DEFAULT_PORT} npm start`
  }
  return `The API cannot listen on HOST=${host} and PORT=${port} (${code}). Choose an address of this machine: HOST=127.0.0.1 npm start`
}
