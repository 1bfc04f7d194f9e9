import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeFolder } from './data-folder.ts'
import { removeContainer } from './docker.ts'
import { boundLog, logCheckIntervalMs, logFileOf } from './log-file.ts'
import { Ports } from './ports.ts'
import { awaitWatchdogs, stopTagged, tagEnvironment } from './process-tags.ts'
import { type ProcessSpec, stopStages, SupervisedProcess } from './supervised-process.ts'
import { Watchdog } from './watchdog.ts'

/** A process that was just killed may hold its lock for a moment longer. */
const LOCK_WAIT_MS = 500

/** Another supervisor uses the data directory. */
export class DataDirectoryBusyError extends Error {
  override name = 'DataDirectoryBusyError'
}

/**
 * Owns a data directory and the processes that use it. A data directory has one supervisor at a time, and no process
 * outlives its supervisor.
 *
 * Open (`start` may be called) → stopping (`stop` was called, nothing is started any more) → stopped.
 */
export class Supervisor {
  /** The real path, without symbolic links. */
  readonly dataDir: string
  /** How many processes were left by a supervisor that was killed together with its watchdog. They have been stopped. */
  readonly leftovers: number
  /** The ports for the processes. */
  readonly ports = new Ports()
  readonly #lock: DatabaseSync
  readonly #watchdog: Watchdog
  readonly #logCheck: NodeJS.Timeout
  readonly #processes: SupervisedProcess[] = []
  #stopped: Promise<void> | undefined

  private constructor(dataDir: string, lock: DatabaseSync, leftovers: number, discardData: boolean) {
    this.dataDir = dataDir
    this.leftovers = leftovers
    this.#lock = lock
    this.#watchdog = new Watchdog(dataDir, discardData)
    this.#logCheck = setInterval(() => this.#boundLogs(), logCheckIntervalMs).unref()
  }

  /**
   * Locks a data directory, and stops the processes that an earlier supervisor left on it.
   *
   * @param dataDir created if it is missing; by default a temporary one, which is deleted at the end, even after `kill -9`
   * @throws DataDirectoryBusyError
   */
  static async open({ dataDir }: { dataDir?: string | undefined } = {}): Promise<Supervisor> {
    const discardData = dataDir === undefined
    const path = realpathSync(makeDirectory(dataDir))
    makeFolder(join(path, 'logs'))
    const lock = takeLock(path)
    try {
      await awaitWatchdogs(path)
      const leftovers = await stopTagged(path)
      await removeContainer(path)
      return new Supervisor(path, lock, leftovers, discardData)
    } catch (error) {
      lock.close()
      throw error
    }
  }

  get stopping(): boolean {
    return this.#stopped !== undefined
  }

  get processes(): readonly SupervisedProcess[] {
    return this.#processes
  }

  get watchdogPid(): number | undefined {
    return this.#watchdog.pid
  }

  /**
   * Starts a process and waits until it is ready.
   *
   * @throws ProcessError
   */
  async start(spec: ProcessSpec): Promise<SupervisedProcess> {
    const environment = { ...spec.environment, ...tagEnvironment(spec.role, this.dataDir) }
    const logFile = logFileOf(this.dataDir, spec.name)
    // A process started during the stop, for example by a caller that holds its handle, would never be stopped.
    const started = new SupervisedProcess({ ...spec, environment }, logFile, () => !this.stopping)
    this.#processes.push(started)
    await started.start()
    return started
  }

  /**
   * Stops every process in order, then releases the data directory.
   *
   * @param force kills the processes at once, also during an orderly stop
   */
  stop({ force = false }: { force?: boolean } = {}): Promise<void> {
    if (force) for (const each of this.#processes) each.kill('SIGKILL')
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    clearInterval(this.#logCheck)
    for (const stage of stopStages) {
      const stopping = this.#processes.filter(({ role }) => stage.includes(role))
      await Promise.all(stopping.map((each) => each.stop()))
    }
    await this.#watchdog.close()
    this.#lock.close()
  }

  #boundLogs(): void {
    for (const { logFile } of this.#processes) boundLog(logFile)
  }
}

function makeDirectory(path: string | undefined): string {
  if (path === undefined) return mkdtempSync(join(tmpdir(), 'sluice-'))
  makeFolder(path)
  return path
}

/**
 * Locks a data directory. The lock is one of SQLite, because the kernel releases it whenever its holder dies, so no lock
 * is ever stale. Closing the database releases it.
 */
function takeLock(dataDir: string): DatabaseSync {
  const lock = new DatabaseSync(join(dataDir, 'lock.sqlite'), { timeout: LOCK_WAIT_MS })
  try {
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    if (!(error instanceof Error) || !error.message.includes('locked')) throw error
    throw new DataDirectoryBusyError(`another process uses ${dataDir}`, { cause: error })
  }
}
