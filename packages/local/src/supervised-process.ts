import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'

/** The order in which processes are stopped: the API, which accepts entries, and what reads them, then the worker, last the stores. */
export const stopStages: readonly (readonly Role[])[] = [
  ['api', 'query'],
  ['worker'],
  ['clickhouse', 'redis'],
]

/**
 * How long a process may take to exit after SIGTERM before it is killed. Three stages take less than the 10 s after which `npm start`
 * exits in any case. Redis and ClickHouse have all acknowledged data on disk, so killing them loses nothing.
 */
export const stopDeadlinesMs = {
  api: 3_500,
  query: 3_500,
  worker: 3_500,
  clickhouse: 2_500,
  redis: 2_500,
} as const

export type Role = keyof typeof stopDeadlinesMs

export interface ProcessSpec {
  readonly role: Role
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly environment: NodeJS.ProcessEnv
  /** Default: 60 s. Redis and ClickHouse need some seconds per gigabyte to read their data. */
  readonly readyDeadlineMs?: number
  /** Called until it returns true. An error means that the process is not ready yet. */
  readonly isReady: (signal: AbortSignal) => Promise<boolean>
  /** Sends a signal in another way, for a local process that only represents the actual one. */
  readonly sendSignal?: (signal: NodeJS.Signals) => void
}

export type Exit = Readonly<{ code: number | null; signal: NodeJS.Signals | null }>

/** Its message has the end of the process' log. */
export class ProcessError extends Error {
  override name = 'ProcessError'

  constructor({ name, logFile }: Pick<SupervisedProcess, 'name' | 'logFile'>, what: string) {
    const lines = existsSync(logFile) ? readFileSync(logFile, 'utf8').trim().split('\n') : []
    super([`${name} ${what}`, `Log file: ${logFile}`, ...lines.slice(-LOG_LINES_SHOWN)].join('\n    '))
  }
}

/**
 * The shell that becomes the process. Before, it starts a guard in the same process group: a second shell, which waits for the end of a pipe
 * and then kills the group. Only the supervisor holds the other end, and the kernel closes it however the supervisor dies. The id of the group
 * cannot be reused while the guard is in it.
 */
const GUARDED = '(read -r _ <&3; kill -KILL -$$) & exec "$@" 3<&-'

const READY_DEADLINE_MS = 60_000
const READY_POLL_MS = 20
const READY_ANSWER_DEADLINE_MS = 1_000
const KILL_DEADLINE_MS = 5_000
/** A log that has reached this size is emptied at the next start of its process. */
const LOG_BYTES_MAX = 8 * 1024 * 1024
const LOG_LINES_SHOWN = 15

/**
 * A process that can be started again after it has exited. Its output goes to a log file.
 *
 * Not started → starting → ready → exited → starting … It is killed if its supervisor or its guard dies.
 */
export class SupervisedProcess {
  readonly role: Role
  readonly name: string
  readonly logFile: string
  readonly #spec: ProcessSpec
  readonly #mayStart: () => boolean
  #child: ChildProcess | undefined
  #exit: Promise<Exit> | undefined

  /** @param mayStart false once the supervisor is stopping and would no longer stop the process */
  constructor(spec: ProcessSpec, logFile: string, mayStart: () => boolean = () => true) {
    this.#spec = spec
    this.#mayStart = mayStart
    this.role = spec.role
    this.name = spec.name
    this.logFile = logFile
  }

  get pid(): number | undefined {
    return this.running ? this.#child?.pid : undefined
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  get exited(): Promise<Exit> {
    if (this.#exit === undefined) throw new Error(`${this.name} was never started`)
    return this.#exit
  }

  /** @throws ProcessError when it exits instead of being ready, or is not ready within its deadline; it is not running then */
  async start(): Promise<void> {
    if (this.running) throw new Error(`${this.name} is already running`)
    if (!this.#mayStart()) throw new Error(`${this.name} is not started: the supervisor is stopping`)
    this.#spawn()
    const { readyDeadlineMs = READY_DEADLINE_MS } = this.#spec
    const deadline = AbortSignal.timeout(readyDeadlineMs)
    while (this.running && !deadline.aborted) {
      const isReady = this.#spec.isReady(AbortSignal.timeout(READY_ANSWER_DEADLINE_MS))
      if (await isReady.catch(() => false)) return
      await Promise.race([this.exited, delay(READY_POLL_MS)])
    }
    if (!this.running)
      throw new ProcessError(this, `exited while starting (${describeExit(await this.exited)})`)
    await this.stop({ signal: 'SIGKILL' })
    throw new ProcessError(this, `was not ready after ${readyDeadlineMs / 1000} s`)
  }

  kill(signal: NodeJS.Signals): void {
    if (!this.running) return
    if (this.#spec.sendSignal === undefined) this.#child?.kill(signal)
    else this.#spec.sendSignal(signal)
  }

  /** Stops the process and waits until it has exited. After `deadlineMs` it is killed. */
  async stop(options: { signal?: NodeJS.Signals; deadlineMs?: number } = {}): Promise<void> {
    const { signal = 'SIGTERM', deadlineMs = stopDeadlinesMs[this.role] } = options
    if (!this.running) return
    this.kill(signal)
    // A process suspended by SIGSTOP receives the other signal only after SIGCONT.
    if (signal !== 'SIGKILL') this.kill('SIGCONT')
    if (await this.#exitsWithin(deadlineMs)) return
    this.kill('SIGKILL')
    if (await this.#exitsWithin(KILL_DEADLINE_MS)) return
    throw new ProcessError(this, `(process ${this.pid ?? '?'}) does not exit`)
  }

  async #exitsWithin(deadlineMs: number): Promise<boolean> {
    await Promise.race([this.exited, delay(deadlineMs, undefined, { ref: false })])
    return !this.running
  }

  #spawn(): void {
    const { command, args, cwd, environment } = this.#spec
    const isFull = (statSync(this.logFile, { throwIfNoEntry: false })?.size ?? 0) >= LOG_BYTES_MAX
    const log = openSync(this.logFile, isFull ? 'w' : 'a', 0o600)
    const child = spawn('/bin/sh', ['-c', GUARDED, 'guard', command, ...args], {
      cwd,
      env: environment,
      detached: true,
      stdio: ['ignore', log, log, 'pipe'],
    })
    closeSync(log)
    // The pipe is a socket, so this process notices the death of the guard.
    const pipe = child.stdio[3] as Duplex
    pipe.on('error', () => undefined)
    pipe.resume().once('close', () => child.kill('SIGKILL'))
    this.#child = child
    this.#exit = once(child, 'exit').then(([code, signal]) => {
      pipe.destroy()
      return { code, signal }
    })
  }
}

export const describeExit = ({ code, signal }: Exit): string => signal ?? `exit code ${code ?? 'unknown'}`
