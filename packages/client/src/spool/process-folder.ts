import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rename, rmdir, stat, unlink } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { hasCode, ignoreMissing } from './files.ts'

const FOLDER_MODE = 0o700
const LOCK = 'lock'
/**
 * The name of the lock until the client listens on it. When a process ends by itself, Node removes the file of a socket by the name that it was
 * created with. Without a file, the folder could be one whose lock is about to be created, and would not be adopted for a minute.
 */
const NEW_LOCK = 'bind'
/** The names of the folders of clients. Other folders and files in the directory are not touched. */
const FOLDER_NAME = /^[0-9a-f]{8}(\.left)?$/
/** The suffix of a folder that its process has left. */
const LEFT = '.left'
/** Between the creation of a folder and of its lock are milliseconds. A folder without a lock is a remnant after this time. */
const LOCK_GRACE_MS = 60_000
/** A process that does not accept the connection to its lock in this time is alive: a dead one rejects it at once. */
const LOCK_ANSWER_MS = 1_000
/** macOS has the shortest paths of sockets: 104 bytes with a zero at their end. */
const LOCK_PATH_BYTES_MAX = 103

/**
 * A folder that belongs to one client while its process lives.
 *
 * The lock is a socket on which the client listens. The operating system closes it when the process ends, however it ends. So no process ever
 * has to guess from a process id or a time whether another one lives.
 */
export class ProcessFolder {
  readonly #directory: string
  readonly #name: string
  readonly #lock: Server
  /** Those that were reported. */
  readonly #failedFolders = new Set<string>()

  private constructor(directory: string, name: string, lock: Server) {
    this.#directory = directory
    this.#name = name
    this.#lock = lock
  }

  /** @param directory of all processes */
  static async create(directory: string): Promise<ProcessFolder> {
    const name = randomBytes(4).toString('hex')
    const path = join(directory, name)
    if (Buffer.byteLength(join(path, LOCK)) > LOCK_PATH_BYTES_MAX)
      throw new Error(`the path of the directory is too long: ${directory}`)
    await mkdir(path, { recursive: true, mode: FOLDER_MODE })
    let lock: Server | undefined
    try {
      lock = await listen(lockAddress(path, NEW_LOCK))
      if (process.platform !== 'win32') await rename(join(path, NEW_LOCK), join(path, LOCK))
      return new ProcessFolder(directory, name, lock)
    } catch (error) {
      // It is attempted again each minute, with another name.
      lock?.close()
      await removeFolder(path).catch(() => undefined)
      throw error
    }
  }

  get path(): string {
    return join(this.#directory, this.#name)
  }

  /**
   * Moves the files of ended processes into this folder. If several processes do this at the same time, each gets some of the files.
   *
   * @param isWanted whether to move a file, by its name and size
   * @param onError called with a folder that cannot be read, once for each. It does not stop the adoption of others
   * @returns the names of the moved files, in the order in which they were created
   */
  async adopt(
    isWanted: (name: string, bytes: number) => boolean,
    onError: (error: unknown) => void,
  ): Promise<string[]> {
    const adopted: string[] = []
    for (const name of await readdir(this.#directory)) {
      const path = join(this.#directory, name)
      if (name === this.#name || !FOLDER_NAME.test(name)) continue
      try {
        if (await isAbandoned(path)) await this.#adoptFrom(path, isWanted, adopted)
      } catch (error) {
        // Of another user, for example.
        if (!this.#failedFolders.has(name)) onError(error)
        this.#failedFolders.add(name)
      }
    }
    return adopted.toSorted()
  }

  /** @param adopted gets the names of the moved files, also of those that were moved before a failure */
  async #adoptFrom(
    path: string,
    isWanted: (name: string, bytes: number) => boolean,
    adopted: string[],
  ): Promise<void> {
    const files = (await filesIn(path)).filter((file) => file !== LOCK && file !== NEW_LOCK)
    let left = files.length
    for (const file of files) {
      try {
        if (!isWanted(file, (await stat(join(path, file))).size)) continue
        await rename(join(path, file), join(this.path, file))
        adopted.push(file)
        left -= 1
      } catch (error) {
        // Another process was faster.
        ignoreMissing(error)
      }
    }
    if (left === 0) await removeFolder(path)
  }

  /** Leaves the files to the next process. */
  async close(): Promise<void> {
    await new Promise((resolve) => this.#lock.close(resolve))
    const left = `${this.path}${LEFT}`
    await rename(this.path, left).catch(ignoreMissing)
    await removeFolder(left)
  }
}

async function listen(address: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // In a worker of node:cluster, the primary process would own the socket otherwise, and close it when the worker only disconnects.
    server.listen({ path: address, exclusive: true }, resolve)
  })
  server.unref()
  // Without a listener, a connection that cannot be accepted for lack of descriptors would end the application.
  server.on('error', () => undefined)
  return server
}

async function isAbandoned(path: string): Promise<boolean> {
  if (path.endsWith(LEFT)) return true
  const code = await connectTo(lockAddress(path, LOCK))
  if (code === 'ECONNREFUSED') return true
  // Windows has no file for the lock of a process that has ended.
  return code === 'ENOENT' && (process.platform === 'win32' || (await isOld(path)))
}

/** @returns the code of the error, if there is one */
function connectTo(address: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(address)
    socket.setTimeout(LOCK_ANSWER_MS)
    socket.once('connect', () => resolve(undefined))
    socket.once('timeout', () => resolve(undefined))
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
    socket.once('close', () => resolve(undefined))
    for (const event of ['connect', 'timeout']) socket.once(event, () => socket.destroy())
  })
}

async function isOld(path: string): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(path)
    return Date.now() - mtimeMs > LOCK_GRACE_MS
  } catch (error) {
    ignoreMissing(error)
    return false
  }
}

async function filesIn(path: string): Promise<string[]> {
  try {
    return await readdir(path)
  } catch (error) {
    // Another process was faster.
    ignoreMissing(error)
    return []
  }
}

async function removeFolder(path: string): Promise<void> {
  for (const name of [LOCK, NEW_LOCK]) await unlink(join(path, name)).catch(ignoreMissing)
  await rmdir(path).catch(ignoreNotEmpty)
}

/** The folder is gone, or has files that another process did not want. */
function ignoreNotEmpty(error: unknown): void {
  if (!hasCode(error, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) throw error
}

/** Pipes of Windows have no files, and one name. */
function lockAddress(path: string, name: string): string {
  return process.platform === 'win32' ? `\\\\.\\pipe\\${join(path, LOCK)}` : join(path, name)
}
