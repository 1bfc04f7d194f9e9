import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { removeContainer } from './docker.ts'
import { boundLog, logFileOf } from './log-file.ts'
import { stopTagged, tagEnvironment } from './process-tags.ts'

/** The supervisor sends this when it has stopped everything itself. */
const FAREWELL = 'all stopped\n'
/** The wait before a watchdog that died is replaced. Without it, a watchdog that cannot run at all would keep a core busy. */
const RESTART_DELAY_MS = 500
/** A process that was being started when the supervisor died has its tag only after a moment. */
const LATE_START_MS = 250

/**
 * A small process that outlives this one, however this one dies, and then stops the processes that this one started. It
 * waits for the end of a pipe that only this process holds. A watchdog that dies is replaced.
 */
export class Watchdog {
  readonly #dataDir: string
  readonly #discardData: boolean
  #child: ChildProcess
  #restart: NodeJS.Timeout | undefined
  #closing = false

  /** @param discardData whether to delete the data directory after its processes have exited */
  constructor(dataDir: string, discardData: boolean) {
    this.#dataDir = dataDir
    this.#discardData = discardData
    this.#child = this.#spawn()
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Stops the watchdog after all other processes have exited, and waits until it has exited. */
  async close(): Promise<void> {
    this.#closing = true
    clearTimeout(this.#restart)
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.stdin?.end(FAREWELL)
    await exited
  }

  #spawn(): ChildProcess {
    const logFile = logFileOf(this.#dataDir, 'watchdog')
    boundLog(logFile)
    const log = openSync(logFile, 'a', 0o600)
    try {
      const program = fileURLToPath(import.meta.url)
      const child = spawn(process.execPath, [program, this.#dataDir, String(this.#discardData)], {
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

// The watchdog's process: `watchdog.ts DATA_DIR DISCARD_DATA`.
if (import.meta.main) {
  const [dataDir, discardData] = process.argv.slice(2)
  if (dataDir === undefined) throw new Error('usage: watchdog.ts DATA_DIR DISCARD_DATA')
  await watch(dataDir, discardData === 'true')
}

/** Waits until the standard input closes. If no farewell was sent, the supervisor has died, and its processes are stopped. */
async function watch(dataDir: string, discardData: boolean): Promise<void> {
  let received = ''
  process.stdin.setEncoding('utf8').on('data', (text: string) => {
    received += text
  })
  process.stdin.on('error', () => undefined)
  await once(process.stdin, 'close')

  if (received !== FAREWELL) {
    let stopped = await stopTagged(dataDir)
    await delay(LATE_START_MS)
    stopped += await stopTagged(dataDir)
    console.log(`${new Date().toISOString()} the supervisor died: stopped ${stopped} processes`)
  }
  await removeContainer(dataDir)
  if (discardData) rmSync(dataDir, { recursive: true, force: true })
}
