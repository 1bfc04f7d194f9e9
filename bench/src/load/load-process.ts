import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
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
  #onProgress: (progress: Progress) => void = () => undefined

  constructor() {
    this.#child = fork(entry, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: [] })
    this.#child.setMaxListeners(0)
    this.#child.on('error', () => undefined)
  }

  /** Builds the requests that the runs send. */
  async prepare(preparation: Preparation): Promise<PoolFacts> {
    const reply = await this.#execute({ kind: 'prepare', ...preparation }, PREPARE_DEADLINE_MS)
    if (reply.kind !== 'prepared') throw new Error(`unexpected reply of the load generator: ${reply.kind}`)
    return reply.facts
  }

  /** @throws when a connection fails under load, or the generator fails */
  async run(
    options: ClosedLoop | OpenLoop,
    onProgress: (progress: Progress) => void = () => undefined,
  ): Promise<LoadResult> {
    this.#onProgress = onProgress
    const reply = await this.#execute({ kind: 'run', ...options }, options.durationMs + RUN_SLACK_MS)
    if (reply.kind !== 'finished') throw new Error(`unexpected reply of the load generator: ${reply.kind}`)
    return reply.result
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), EXIT_DEADLINE_MS)
    if (this.#child.connected) this.#child.disconnect()
    await exited
    clearTimeout(kill)
  }

  async #execute(command: Command, deadlineMs: number): Promise<Reply> {
    if (!this.#child.connected) throw new Error('the load generator has exited')
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        clearTimeout(timer)
        this.#child.off('message', onMessage)
        this.#child.off('exit', onExit)
        act()
      }
      const onMessage = (message: unknown): void => {
        const reply = message as Reply
        if (reply.kind === 'progress') this.#onProgress(reply.progress)
        else if (reply.kind === 'failed') settle(() => reject(new Error(`load generator: ${reply.message}`)))
        else settle(() => resolve(reply))
      }
      const onExit = (): void => settle(() => reject(new Error('the load generator exited')))
      const timer = setTimeout(
        () => settle(() => reject(new Error('the load generator did not reply before the deadline'))),
        deadlineMs,
      )
      this.#child.on('message', onMessage)
      this.#child.once('exit', onExit)
      this.#child.send(command)
    })
  }
}
