import { keepAlive } from './keep-alive.ts'
import { optionsFrom, readLocalFile, writeLocalFile } from './local-file.ts'
import { probePort } from './ports.ts'
import type { Reporter } from './reporter.ts'
import { startStack, type Stack } from './stack.ts'
import { ProcessError } from './supervised-process.ts'
import { DataDirectoryBusyError, Supervisor } from './supervisor.ts'
import { welcome } from './welcome.ts'

export interface LocalRunOptions {
  readonly dataDir: string
  readonly isDefaultDataDir: boolean
  /** The API's; 0 takes a free one. */
  readonly port: number
  readonly reporter: Reporter
  /** 0 ≤ random < 1 */
  readonly random: () => number
}

/** It cannot go on; the message is for the person who started it. */
class CannotRunError extends Error {
  override name = 'CannotRunError'
}

/**
 * Two signals of one Ctrl-C: the terminal sends it to the whole foreground group, and npm passes on the one that it got.
 * No person presses twice within this time.
 */
const SAME_INTERRUPT_MS = 200

/**
 * One run of `npm start`.
 *
 * Starting → ready → stopping → over. `interrupt` leads from the first two to stopping; in stopping it kills what is
 * still there. A process that keeps dying, or a start that fails, leads there too, with exit code 1.
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

  /** Stops everything in order; at once if it is called again. */
  interrupt(): void {
    const nowMs = performance.now()
    if (this.#interruptedAtMs === undefined) {
      this.#interruptedAtMs = nowMs
      this.#options.reporter.text('\n')
      this.#options.reporter.note('Stopping; Ctrl-C again to force it …')
      this.#interrupted.resolve(undefined)
      this.#supervisor?.stop().catch(() => undefined)
    } else if (nowMs - this.#interruptedAtMs > SAME_INTERRUPT_MS && !this.#forced) {
      this.#forced = true
      this.#supervisor?.stop({ force: true }).catch(() => undefined)
    }
  }

  /** Runs until it is interrupted or cannot go on, and gives the exit code. */
  async run(): Promise<number> {
    const failure = await this.#startAndKeep().catch((error: unknown) => error)
    const failed = failure !== undefined && this.#interruptedAtMs === undefined
    if (failed) this.#explain(failure)
    const stoppingAtMs = performance.now()
    if (this.#supervisor === undefined) return 1
    await this.#supervisor.stop()
    if (this.#supervisor.processes.length === 0) return failed ? 1 : 0
    if (this.#forced) this.#options.reporter.warn('Killed. What was accepted is kept.')
    else this.#options.reporter.done('Stopped', performance.now() - (this.#interruptedAtMs ?? stoppingAtMs))
    return failed || this.#forced ? 1 : 0
  }

  async #startAndKeep(): Promise<void> {
    const { reporter, random } = this.#options
    const stack = await this.#start()
    const kept = Object.values(stack.processes).map((each) =>
      keepAlive(stack.supervisor, each, { report: reporter, random }),
    )
    await Promise.race([this.#interrupted.promise, Promise.all(kept)])
  }

  async #start(): Promise<Stack> {
    const { dataDir, isDefaultDataDir, reporter } = this.#options
    if (process.platform === 'win32') {
      throw new CannotRunError('There is no embedded ClickHouse for Windows; use its Linux subsystem (WSL).')
    }
    const supervisor = await Supervisor.open({ dataDir })
    this.#supervisor = supervisor
    if (this.#interruptedAtMs !== undefined) throw new CannotRunError('interrupted')
    if (supervisor.leftovers > 0) {
      reporter.note(`Ended ${supervisor.leftovers} processes that an earlier run had left`)
    }
    const port = await this.#apiPort()
    const earlier = readLocalFile(dataDir)
    const { opsPorts, ...options } = earlier === undefined ? { opsPorts: undefined } : optionsFrom(earlier)
    const stack = await startStack({
      ...options,
      supervisor,
      progress: reporter,
      api: { port, opsPort: opsPorts?.api },
      worker: { opsPort: opsPorts?.worker },
    })
    writeLocalFile(dataDir, stack)
    const heading = (text: string): string => reporter.paint('bold', text)
    reporter.text(welcome(stack, { dataDir: supervisor.dataDir, isDefaultDataDir, heading }))
    return stack
  }

  async #apiPort(): Promise<number | undefined> {
    const { port } = this.#options
    if (port === 0) return undefined
    const probe = await probePort(port)
    if ('port' in probe) return port
    const reason =
      probe.code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be used (${probe.code})`
    throw new CannotRunError(`Port ${port} ${reason}. Choose another: PORT=${port + 1} npm start`)
  }

  #explain(failure: unknown): void {
    const { reporter, dataDir } = this.#options
    if (failure instanceof DataDirectoryBusyError) {
      const earlier = readLocalFile(dataDir)
      const address = earlier === undefined ? '' : `, its API on ${earlier.apiUrl}`
      reporter.fail(`Sluice runs already on ${dataDir}${address}. Stop it first, or set SLUICE_DATA_DIR.`)
    } else if (failure instanceof ProcessError) {
      reporter.fail(failure.message, [
        `its log is ${failure.logFile}`,
        ...failure.log.map((line) => `| ${line}`),
      ])
    } else if (failure instanceof CannotRunError) {
      reporter.fail(failure.message)
    } else {
      reporter.fail(failure instanceof Error ? failure.message : String(failure))
    }
  }
}
