import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { boundLog, lastLines } from './log-file.ts'

/** The purpose of a process. */
export type Role = 'api' | 'worker' | 'clickhouse' | 'redis'

/**
 * The order in which processes are stopped: first the API, which accepts entries, then the worker, last the stores.
 * The roles of one stage are stopped together.
 */
export const stopStages: readonly (readonly Role[])[] = [['api'], ['worker'], ['clickhouse', 'redis']]

/**
 * How long a process may take to exit after SIGTERM before it is killed. Redis and ClickHouse have all acknowledged data on
 * disk, so killing them loses nothing. ClickHouse takes 1.5 s.
 */
export const stopDeadlinesMs: Readonly<Record<Role, number>> = {
  api: 3_500,
  worker: 3_500,
  clickhouse: 2_500,
  redis: 2_500,
}

/** The maximum time for stopping everything, which `npm start` guarantees. */
export const stopAllDeadlineMs = 10_000

const worstCaseMs = stopStages
  .map((stage) => Math.max(...stage.map((role) => stopDeadlinesMs[role])))
  .reduce((sum, ms) => sum + ms, 0)
if (worstCaseMs >= stopAllDeadlineMs) {
  throw new Error('the sum of the stop deadlines must be below stopAllDeadlineMs')
}

/** The command of a process, and the check whether it is ready. */
export interface ProcessSpec {
  readonly role: Role
  /** The name in messages and of the log file. */
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  /** The program's own name, for programs whose behaviour depends on it. */
  readonly argv0?: string
  readonly cwd: string
  /** The complete environment of the process. */
  readonly environment: Readonly<Record<string, string>>
  readonly readyDeadlineMs: number
  /** Called repeatedly until it returns true. An error means that the process is not ready yet. */
  readonly isReady: (signal: AbortSignal) => Promise<boolean>
  /** Sends a signal in another way, for a local process that only represents the actual one. */
  readonly sendSignal?: (signal: NodeJS.Signals) => void
}

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The reason why the process could not be started. */
  readonly error?: Error
}

/** A process exited, or was not ready in time. `log` has the last lines of its output. */
export class ProcessError extends Error {
  override name = 'ProcessError'
  readonly logFile: string
  readonly log: readonly string[]

  constructor(message: string, logFile: string) {
    super(message)
    this.logFile = logFile
    this.log = lastLines(logFile, 15)
  }
}

const READY_POLL_MS = 20
const READY_ANSWER_DEADLINE_MS = 1_000
/** The kernel handles SIGKILL at once. The rest is headroom for a busy machine. */
const KILL_DEADLINE_MS = 5_000

interface Run {
  readonly child: ChildProcess
  readonly startedAtMs: number
  readonly exited: Promise<Exit>
  exit: Exit | undefined
}

/**
 * A process that can be started, terminated by any signal, and started again with the same command.
 *
 * Idle → (`start`) starting → ready → (crash, `kill`, `stop`) exited → (`start`) starting → …
 * It leads a separate process group, so that Ctrl-C in a terminal reaches only the supervisor. Signals go to the whole
 * group.
 */
export class SupervisedProcess {
  readonly role: Role
  readonly name: string
  readonly logFile: string
  readonly #spec: ProcessSpec
  readonly #mayStart: () => boolean
  #run: Run | undefined

  /** @param mayStart called at each start; false once the supervisor is stopping and would no longer stop the process */
  constructor(spec: ProcessSpec, logFile: string, mayStart: () => boolean = () => true) {
    this.#spec = spec
    this.#mayStart = mayStart
    this.role = spec.role
    this.name = spec.name
    this.logFile = logFile
  }

  /** Undefined while the process is not running. */
  get pid(): number | undefined {
    return this.running ? this.#run?.child.pid : undefined
  }

  get running(): boolean {
    return this.#run !== undefined && this.#run.exit === undefined
  }

  /** Resolves when the latest run exits. */
  get exited(): Promise<Exit> {
    if (this.#run === undefined) throw new Error(`${this.name} was never started`)
    return this.#run.exited
  }

  /** How long the latest run has lasted. */
  get uptimeMs(): number {
    return this.#run === undefined ? 0 : performance.now() - this.#run.startedAtMs
  }

  /**
   * Starts the process and waits until it is ready.
   *
   * @throws ProcessError when it exits instead, or is not ready within its deadline; it is not running then
   */
  async start(): Promise<void> {
    if (this.running) throw new Error(`${this.name} is already running`)
    if (!this.#mayStart()) throw new Error(`${this.name} is not started: the supervisor is stopping`)
    const run = this.#spawn()
    this.#run = run
    const deadline = AbortSignal.timeout(this.#spec.readyDeadlineMs)
    while (run.exit === undefined && !deadline.aborted) {
      if (await this.#isReady()) return
      await Promise.race([run.exited, delay(READY_POLL_MS)])
    }
    if (run.exit !== undefined) {
      throw new ProcessError(`${this.name} exited while starting (${describeExit(run.exit)})`, this.logFile)
    }
    await this.stop({ signal: 'SIGKILL' })
    throw new ProcessError(
      `${this.name} was not ready after ${this.#spec.readyDeadlineMs / 1000} s`,
      this.logFile,
    )
  }

  /** Sends a signal, if the process is running. */
  kill(signal: NodeJS.Signals): void {
    const pid = this.pid
    if (pid === undefined) return
    if (this.#spec.sendSignal !== undefined) return this.#spec.sendSignal(signal)
    try {
      process.kill(-pid, signal)
    } catch {
      // The process has exited, and its exit event is pending.
    }
  }

  /** Stops the process and waits until it has exited. After `deadlineMs` it is killed. */
  async stop({
    signal = 'SIGTERM',
    deadlineMs = stopDeadlinesMs[this.role],
  }: { signal?: NodeJS.Signals; deadlineMs?: number } = {}): Promise<void> {
    if (!this.running) return
    this.kill(signal)
    // A process suspended by SIGSTOP receives the other signal only after SIGCONT.
    if (signal !== 'SIGKILL') this.kill('SIGCONT')
    if (await this.#exitsWithin(deadlineMs)) return
    this.kill('SIGKILL')
    if (await this.#exitsWithin(KILL_DEADLINE_MS)) return
    throw new ProcessError(`${this.name} (process ${this.pid ?? '?'}) does not exit`, this.logFile)
  }

  async #exitsWithin(deadlineMs: number): Promise<boolean> {
    const timer = new AbortController()
    const timeout = delay(deadlineMs, undefined, { signal: timer.signal }).catch(() => undefined)
    await Promise.race([this.exited, timeout])
    timer.abort()
    return !this.running
  }

  async #isReady(): Promise<boolean> {
    try {
      return await this.#spec.isReady(AbortSignal.timeout(READY_ANSWER_DEADLINE_MS))
    } catch {
      return false
    }
  }

  #spawn(): Run {
    const { command, args, argv0, cwd, environment } = this.#spec
    boundLog(this.logFile)
    const log = openSync(this.logFile, 'a', 0o600)
    try {
      const child = spawn(command, args, {
        cwd,
        env: environment,
        detached: true,
        stdio: ['ignore', log, log],
        ...(argv0 === undefined ? {} : { argv0 }),
      })
      const { promise: exited, resolve } = Promise.withResolvers<Exit>()
      const run: Run = { child, startedAtMs: performance.now(), exited, exit: undefined }
      const end = (exit: Exit): void => {
        run.exit ??= exit
        resolve(run.exit)
      }
      child.once('error', (error) => end({ code: null, signal: null, error }))
      child.once('exit', (code, signal) => end({ code, signal }))
      return run
    } finally {
      closeSync(log)
    }
  }
}

/** Human-readable: `exit code 1`, `SIGKILL`, … */
export function describeExit({ code, signal, error }: Exit): string {
  if (error !== undefined) return error.message
  return signal ?? `exit code ${code ?? 'unknown'}`
}
