import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Ports } from './ports.ts'
import { type ProcessSpec, stopStages, SupervisedProcess } from './supervised-process.ts'

/** A process that was just killed may hold its lock for a moment longer. */
const LOCK_WAIT_MS = 500

export class DataDirectoryBusyError extends Error {
  override name = 'DataDirectoryBusyError'
}

/**
 * Owns a data directory and the processes that use it. A directory has one supervisor at a time, and no process outlives its supervisor.
 *
 * Open (`start` may be called) → stopping (`stop` was called, nothing is started any more) → stopped.
 */
export class Supervisor {
  /** Without symbolic links. */
  readonly dataDir: string
  readonly ports = new Ports()
  readonly #lock: DatabaseSync
  readonly #isTemporary: boolean
  readonly #processes: SupervisedProcess[] = []
  #stopped: Promise<void> | undefined

  /** @param options.dataDir created if it is missing; by default a temporary one, which `stop` deletes @throws DataDirectoryBusyError */
  constructor({ dataDir }: { dataDir?: string | undefined } = {}) {
    if (dataDir !== undefined) makeFolder(dataDir)
    this.dataDir = realpathSync(dataDir ?? mkdtempSync(join(tmpdir(), 'sluice-')))
    this.#isTemporary = dataDir === undefined
    makeFolder(join(this.dataDir, 'logs'))
    this.#lock = takeLock(this.dataDir)
  }

  async start(spec: ProcessSpec): Promise<SupervisedProcess> {
    const logFile = join(this.dataDir, 'logs', `${spec.name}.log`)
    // A process started during the stop, for example by a caller that holds its handle, would never be stopped.
    const started = new SupervisedProcess(spec, logFile, () => this.#stopped === undefined)
    this.#processes.push(started)
    await started.start()
    return started
  }

  /** Stops every process in order, then releases the data directory. @param force kills them at once, also during an orderly stop */
  stop({ force = false }: { force?: boolean } = {}): Promise<void> {
    if (force) for (const each of this.#processes) each.kill('SIGKILL')
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    for (const stage of stopStages) {
      const stopping = this.#processes.filter(({ role }) => stage.includes(role))
      await Promise.all(stopping.map((each) => each.stop()))
    }
    this.#lock.close()
    if (this.#isTemporary) rmSync(this.dataDir, { recursive: true, force: true })
  }
}

/** For its owner only, with missing parents. Node's recursive `mkdir` never returns where no folders are allowed, such as below /proc. */
export function makeFolder(path: string): void {
  if (isFolder(path)) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (!isFolder(path)) throw error
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** The lock is one of SQLite: the kernel releases it whenever its holder dies, so no lock is ever stale. */
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
