import { type Installation, startInstallation } from './installation.ts'
import { keepAlive } from './keep-alive.ts'
import { optionsFrom, readLocalFile, writeLocalFile } from './local-file.ts'
import { probePort } from './ports.ts'
import type { Reporter } from './reporter.ts'
import { ProcessError } from './supervised-process.ts'
import { DataDirectoryBusyError, Supervisor } from './supervisor.ts'

export interface LocalRunOptions {
  readonly dataDir: string
  readonly isDefaultDataDir: boolean
  /** The port of the API. 0 chooses a free one. */
  readonly port: number
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

/**
 * One run of `npm start`.
 *
 * Starting → ready → stopping → stopped. `interrupt` stops the run; during stopping it kills the remaining processes. A
 * process that keeps dying, or a failed start, stops the run too, with exit code 1.
 */
export class LocalRun {
  readonly #options: LocalRunOptions
  readonly #interrupted = Promise.withResolvers<undefined>()
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
    } else if (nowMs - this.#interruptedAtMs > SAME_INTERRUPT_MS && !this.#forced) {
      this.#forced = true
      this.#supervisor?.stop({ force: true }).catch(() => undefined)
    }
  }

  /** Runs until it is interrupted or cannot continue. @returns the exit code */
  async run(): Promise<number> {
    const failure = await this.#startAndKeep().catch((error: unknown) => error)
    const failed = failure !== undefined && this.#interruptedAtMs === undefined
    if (failed) this.#explain(failure)
    const stoppingAtMs = performance.now()
    if (this.#supervisor === undefined) return 1
    await this.#supervisor.stop()
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
    const { dataDir, isDefaultDataDir, reporter } = this.#options
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
      api: { port, opsPort: opsPorts?.api },
      worker: { opsPort: opsPorts?.worker },
    })
    writeLocalFile(dataDir, installation)
    reporter.welcome(installation, { dataDir: supervisor.dataDir, isDefaultDataDir })
    return installation
  }

  async #apiPort(): Promise<number | undefined> {
    const { port } = this.#options
    if (port === 0) return undefined
    const probe = await probePort(port)
    if ('port' in probe) return port
    const reason =
      probe.code === 'EADDRINUSE' ? 'is used by another program' : `cannot be used (${probe.code})`
    throw new CannotRunError(`Port ${port} ${reason}. Choose another: PORT=${port + 1} npm start`)
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
    } else if (failure instanceof CannotRunError) {
      reporter.fail(failure.message)
    } else {
      reporter.fail(failure instanceof Error ? failure.message : String(failure))
    }
  }
}
