import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ApplicationSettings, Command } from './application.ts'

const program = fileURLToPath(new URL('application.ts', import.meta.url))

/** Runs the application, and passes it commands. */
export class ApplicationProcess {
  readonly #child: ChildProcess
  readonly exited: Promise<{ readonly code: number | null; readonly tookMs: number }>
  stderr = ''
  #askedAtMs = 0

  constructor(settings: ApplicationSettings, environment: Readonly<Record<string, string>> = {}) {
    this.#child = fork(program, [JSON.stringify(settings)], {
      env: { PATH: process.env['PATH'], ...environment },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child.stderr?.on('data', (output: Buffer) => (this.stderr += output.toString()))
    this.exited = once(this.#child, 'close').then(([code]) => {
      return { code: code as number | null, tookMs: performance.now() - this.#askedAtMs }
    })
  }

  /** Resolves with the result, when the application has done it. */
  async ask(command: Command): Promise<unknown> {
    const response = once(this.#child, 'message')
    void this.end(command)
    const [{ result }] = (await response) as [{ result: unknown }]
    return result
  }

  /** For a command that ends the process. Resolves when it has ended. */
  end(command: Command): typeof this.exited {
    this.#askedAtMs = performance.now()
    this.#child.send(command)
    return this.exited
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.exited
  }
}
