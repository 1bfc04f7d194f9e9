import { mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { removeContainer } from './docker.ts'
import { boundLog, logCheckIntervalMs } from './log-file.ts'
import { awaitWatchdogs, endTagged, tagEnvironment } from './process-tags.ts'
import { logFileOf, stopStages } from './roles.ts'
import { type ProcessSpec, SupervisedProcess } from './supervised-process.ts'
import { Watchdog } from './watchdog.ts'

/** A process that was just killed holds its lock for a moment longer. */
const LOCK_WAIT_MS = 500

/** Somebody else runs on the data directory. */
export class DataDirectoryBusyError extends Error {
  override name = 'DataDirectoryBusyError'
}

/**
 * Owns a data directory and the processes that run on it: nobody else runs on it at the same time, and no process
 * outlives its supervisor.
 *
 * Open (`start` may be called) → stopping (`stop` was called: nothing starts any more) → stopped.
 */
export class Supervisor {
  /** The real path, without symbolic links. */
  readonly dataDir: string
  /** How many processes a supervisor that was killed, its watchdog too, had left. They have been ended. */
  readonly leftovers: number
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
   * Takes a data directory, and ends what an earlier owner has left running on it.
   *
   * @param dataDir made if it is missing; without it, a temporary one that goes at the end, even at a violent one
   * @throws DataDirectoryBusyError
   */
  static async open({ dataDir }: { dataDir?: string | undefined } = {}): Promise<Supervisor> {
    const discardData = dataDir === undefined
    const path = realpathSync(makeDirectory(dataDir))
    mkdirSync(join(path, 'logs'), { recursive: true, mode: 0o700 })
    const lock = takeLock(path)
    try {
      await awaitWatchdogs(path)
      const leftovers = await endTagged(path)
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
    // Once everything is being stopped nobody would end what starts, whoever has its handle.
    const started = new SupervisedProcess({ ...spec, environment }, logFile, () => !this.stopping)
    this.#processes.push(started)
    await started.start()
    return started
  }

  /**
   * Ends every process, in order, then lets go of the data directory.
   *
   * @param force kills them at once instead; also while an orderly stop is under way
   */
  stop({ force = false }: { force?: boolean } = {}): Promise<void> {
    if (force) for (const each of this.#processes) each.kill('SIGKILL')
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    clearInterval(this.#logCheck)
    for (const stage of stopStages) {
      const ending = this.#processes.filter(({ role }) => stage.includes(role))
      await Promise.all(ending.map((each) => each.stop()))
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
  mkdirSync(path, { recursive: true, mode: 0o700 })
  return path
}

/**
 * Takes the lock of a data directory. It is a lock of SQLite's, because the kernel lets go of it when its holder dies,
 * however it dies: there is no stale lock. Closing the database gives it back.
 */
function takeLock(dataDir: string): DatabaseSync {
  const lock = new DatabaseSync(join(dataDir, 'lock.sqlite'), { timeout: LOCK_WAIT_MS })
  try {
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    if (!(error instanceof Error) || !error.message.includes('locked')) throw error
    throw new DataDirectoryBusyError(`another process runs on ${dataDir}`, { cause: error })
  }
}
