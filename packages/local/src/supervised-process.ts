import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { boundLog, lastLines } from './log-file.ts'
import { type Role, stopDeadlinesMs } from './roles.ts'

/** What to run, and how to see that it runs. */
export interface ProcessSpec {
  readonly role: Role
  /** Names the process in messages and its log file. */
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  /** What the program takes for its own name, where that decides what it does. */
  readonly argv0?: string
  readonly cwd: string
  /** All that the process sees of an environment. */
  readonly environment: Readonly<Record<string, string>>
  readonly readyDeadlineMs: number
  /** Asked again and again until it says yes. An error means: not yet. */
  readonly isReady: (signal: AbortSignal) => Promise<boolean>
  /** Sends a signal by another way, where the process that is started only stands for the one that works. */
  readonly sendSignal?: (signal: NodeJS.Signals) => void
}

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Why it could not even be started. */
  readonly error?: Error
}

/** A process ended, or was not ready in time. `logFile` has what it said. */
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
/** SIGKILL needs only the kernel, so this is headroom for a machine that is busy. */
const KILL_DEADLINE_MS = 5_000

interface Run {
  readonly child: ChildProcess
  readonly startedAtMs: number
  readonly exited: Promise<Exit>
  exit: Exit | undefined
}

/**
 * A process that can be started, ended by any signal, and started again with the same command.
 *
 * Idle → (`start`) starting → ready → (its own death, `kill`, `stop`) ended → (`start`) starting → …
 * It leads a process group of its own, so that a terminal's Ctrl-C reaches only the one who supervises it; signals go to
 * the whole group.
 */
export class SupervisedProcess {
  readonly role: Role
  readonly name: string
  readonly logFile: string
  readonly #spec: ProcessSpec
  readonly #mayStart: () => boolean
  #run: Run | undefined

  /** @param mayStart asked at each start: false once whoever would end the process no longer will */
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

  /** How the latest run ends. */
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
   * @throws ProcessError when it ends instead, or takes longer than its deadline; it is not running then
   */
  async start(): Promise<void> {
    if (this.running) throw new Error(`${this.name} is running already`)
    if (!this.#mayStart()) throw new Error(`${this.name} is not started: everything is being stopped`)
    const run = this.#spawn()
    this.#run = run
    const deadline = AbortSignal.timeout(this.#spec.readyDeadlineMs)
    while (run.exit === undefined && !deadline.aborted) {
      if (await this.#isReady()) return
      await Promise.race([run.exited, delay(READY_POLL_MS)])
    }
    if (run.exit !== undefined) {
      throw new ProcessError(`${this.name} ended while starting (${describeExit(run.exit)})`, this.logFile)
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
      // It has ended; its exit is about to be noticed.
    }
  }

  /** Ends the process and waits until it has ended; one that has not after `deadlineMs` is killed. */
  async stop({
    signal = 'SIGTERM',
    deadlineMs = stopDeadlinesMs[this.role],
  }: { signal?: NodeJS.Signals; deadlineMs?: number } = {}): Promise<void> {
    if (!this.running) return
    this.kill(signal)
    // A process that was stopped by a signal gets the other only once it runs again.
    if (signal !== 'SIGKILL') this.kill('SIGCONT')
    if (await this.#endsWithin(deadlineMs)) return
    this.kill('SIGKILL')
    if (await this.#endsWithin(KILL_DEADLINE_MS)) return
    throw new ProcessError(`${this.name} (process ${this.pid ?? '?'}) does not end`, this.logFile)
  }

  async #endsWithin(deadlineMs: number): Promise<boolean> {
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

/** For people: `exit code 1`, `SIGKILL`, … */
export function describeExit({ code, signal, error }: Exit): string {
  if (error !== undefined) return error.message
  return signal ?? `exit code ${code ?? 'unknown'}`
}
