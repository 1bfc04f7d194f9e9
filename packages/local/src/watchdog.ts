import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { boundLog } from './log-file.ts'
import { tagEnvironment } from './process-tags.ts'
import { logFileOf } from './roles.ts'

const entry = fileURLToPath(new URL('watchdog-main.ts', import.meta.url))
/** What the supervisor says when it has ended everything itself. */
export const FAREWELL = 'all ended\n'
/** Long enough that a watchdog which cannot run at all does not keep a core busy. */
const RESTART_DELAY_MS = 500

/**
 * A small process that outlives this one, whatever kills it, and then ends what this one has started: it waits for the
 * end of a pipe that only this process holds. One that dies is replaced.
 */
export class Watchdog {
  readonly #dataDir: string
  readonly #discardData: boolean
  #child: ChildProcess
  #restart: NodeJS.Timeout | undefined
  #closing = false

  /** @param discardData whether the data directory goes too, once its processes have ended */
  constructor(dataDir: string, discardData: boolean) {
    this.#dataDir = dataDir
    this.#discardData = discardData
    this.#child = this.#spawn()
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Sends the watchdog away, everything having ended, and waits until it is gone. */
  async close(): Promise<void> {
    this.#closing = true
    clearTimeout(this.#restart)
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.stdin?.end(FAREWELL)
    await gone
  }

  #spawn(): ChildProcess {
    const logFile = logFileOf(this.#dataDir, 'watchdog')
    boundLog(logFile)
    const log = openSync(logFile, 'a', 0o600)
    try {
      const child = spawn(process.execPath, [entry, this.#dataDir, String(this.#discardData)], {
        cwd: '/',
        env: tagEnvironment('watchdog', this.#dataDir),
        detached: true,
        stdio: ['pipe', log, log],
      })
      child.stdin?.on('error', () => undefined)
      child.once('error', () => this.#replace())
      child.once('exit', () => this.#replace())
      return child
    } finally {
      closeSync(log)
    }
  }

  #replace(): void {
    if (this.#closing) return
    this.#restart = setTimeout(() => {
      this.#child = this.#spawn()
    }, RESTART_DELAY_MS)
  }
}
