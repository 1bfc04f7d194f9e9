import { type ChildProcess, fork } from 'node:child_process'
import { on, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type {
  ClosedLoop,
  Command,
  LoadResult,
  OpenLoop,
  PoolFacts,
  Preparation,
  Progress,
  Reply,
} from './protocol.ts'

const entry = fileURLToPath(new URL('load-main.ts', import.meta.url))
const PREPARE_DEADLINE_MS = 120_000
/** What a run may take in addition to its window: connecting, and waiting for outstanding responses. */
const RUN_SLACK_MS = 60_000
const EXIT_DEADLINE_MS = 5_000

/** The load generator in a separate process: its CPU time is measured separately, and this process cannot delay it. */
export class LoadProcess {
  readonly #child: ChildProcess

  constructor() {
    this.#child = fork(entry, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: [] })
    this.#child.on('error', () => undefined)
  }

  /** Builds the requests that the runs send. */
  prepare(preparation: Preparation): Promise<PoolFacts> {
    return this.#execute<PoolFacts>({ kind: 'prepare', ...preparation }, PREPARE_DEADLINE_MS)
  }

  /** @throws when a connection fails under load, or the generator fails */
  run(
    options: ClosedLoop | OpenLoop,
    onProgress: (progress: Progress) => void = () => undefined,
  ): Promise<LoadResult> {
    const deadlineMs = options.durationMs + RUN_SLACK_MS
    return this.#execute<LoadResult>({ kind: 'run', ...options }, deadlineMs, onProgress)
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), EXIT_DEADLINE_MS)
    if (this.#child.connected) this.#child.disconnect()
    await exited
    clearTimeout(kill)
  }

  async #execute<Result>(
    command: Command,
    deadlineMs: number,
    onProgress: (progress: Progress) => void = () => undefined,
  ): Promise<Result> {
    if (!this.#child.connected) throw new Error('the load generator has exited')
    const replies = on(this.#child, 'message', { signal: AbortSignal.timeout(deadlineMs), close: ['exit'] })
    this.#child.send(command)
    for await (const [reply] of replies) {
      const { progress, result, error } = reply as Reply
      if (progress !== undefined) onProgress(progress)
      if (error !== undefined) throw new Error(`load generator: ${error}`)
      if (result !== undefined) return result as Result
    }
    throw new Error('the load generator exited')
  }
}
