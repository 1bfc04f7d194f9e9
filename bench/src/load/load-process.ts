import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type {
  Answer,
  ClosedLoop,
  Command,
  LoadResult,
  OpenLoop,
  PoolFacts,
  Preparation,
  Progress,
} from './protocol.ts'

const entry = fileURLToPath(new URL('load-main.ts', import.meta.url))
const PREPARE_DEADLINE_MS = 120_000
/** What a run may take beyond its window: connecting, and the answers that are still out. */
const RUN_SLACK_MS = 60_000
const END_DEADLINE_MS = 5_000

/** The load generator, in a process of its own: its CPU time is its own, and nothing of this process delays it. */
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
    const done = await this.#ask({ kind: 'prepare', ...preparation }, PREPARE_DEADLINE_MS)
    if (done.kind !== 'prepared') throw new Error(`the load generator answered ${done.kind}`)
    return done.facts
  }

  /** @throws when a connection fails under load, or the generator itself */
  async run(
    options: ClosedLoop | OpenLoop,
    onProgress: (progress: Progress) => void = () => undefined,
  ): Promise<LoadResult> {
    this.#onProgress = onProgress
    const done = await this.#ask({ kind: 'run', ...options }, options.durationMs + RUN_SLACK_MS)
    if (done.kind !== 'finished') throw new Error(`the load generator answered ${done.kind}`)
    return done.result
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), END_DEADLINE_MS)
    if (this.#child.connected) this.#child.disconnect()
    await ended
    clearTimeout(kill)
  }

  async #ask(command: Command, deadlineMs: number): Promise<Answer> {
    if (!this.#child.connected) throw new Error('the load generator has ended')
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        clearTimeout(timer)
        this.#child.off('message', onMessage)
        this.#child.off('exit', onExit)
        act()
      }
      const onMessage = (message: unknown): void => {
        const reply = message as Answer
        if (reply.kind === 'progress') this.#onProgress(reply.progress)
        else if (reply.kind === 'failed') settle(() => reject(new Error(`load: ${reply.message}`)))
        else settle(() => resolve(reply))
      }
      const onExit = (): void => settle(() => reject(new Error('the load generator ended')))
      const timer = setTimeout(
        () => settle(() => reject(new Error('the load generator did not answer in time'))),
        deadlineMs,
      )
      this.#child.on('message', onMessage)
      this.#child.once('exit', onExit)
      this.#child.send(command)
    })
  }
}
