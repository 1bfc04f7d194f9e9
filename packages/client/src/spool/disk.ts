import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { dirname, join } from 'node:path'

/** Logs may have secrets: only the owner reads them. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
/** A process that does not accept the connection to its lock in this time is alive: a dead one rejects it at once. */
const LOCK_RESPONSE_MS = 1_000
/** macOS has the shortest paths of sockets: 104 bytes with a zero at their end. */
const LOCK_PATH_BYTES_MAX = 103

/** Shows to other processes that this one lives. */
export interface Lock {
  /** A prefix of the names of the files that belong to its holder. */
  readonly id: string
  release(): Promise<void>
}

/** What a spool does with a disk. Tests replace it by a full or hanging disk. */
export type Disk = ReturnType<typeof systemDisk>

/** @param fsync whether to wait until the disk has the bytes */
export function systemDisk(fsync: boolean) {
  const syncFolder = async (path: string): Promise<void> => {
    // Windows cannot open folders, and does not need it.
    if (!fsync || process.platform === 'win32') return
    const folder = await open(dirname(path), 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }
  return {
    /** Creates the file if it does not exist. */
    write: async (path: string, bytes: Uint8Array, position: number): Promise<void> => {
      const file = await open(path, constants.O_CREAT | constants.O_WRONLY, FILE_MODE)
      try {
        let written = 0
        while (written < bytes.length)
          written += (await file.write(bytes, written, undefined, position + written)).bytesWritten
        if (fsync) await file.datasync()
      } finally {
        await file.close()
      }
      if (position === 0) await syncFolder(path)
    },
    rename: async (from: string, to: string): Promise<void> => {
      await rename(from, to)
      await syncFolder(to)
    },
    /** Removes the file if it exists. */
    remove: (path: string): Promise<void> => unlink(path).catch(ignoreMissing),
    read: (path: string): Promise<Buffer> => readFile(path),
    size: async (path: string): Promise<number> => (await stat(path)).size,
    list: (directory: string): Promise<string[]> => readdir(directory),
    /** Creates the directory too. */
    lock: createLock,
    /** Whether the holder of a lock has ended, however it ended. A lock that does not exist is abandoned. */
    isAbandoned: async (directory: string, id: string): Promise<boolean> => {
      const code = await connectTo(lockAddress(directory, id, 'lock'))
      return code === 'ECONNREFUSED' || code === 'ENOENT'
    },
  }
}

/**
 * A socket on which the process listens. The operating system closes it when the process ends, however it ends. So no process ever has to guess
 * from a process id or a time whether another one lives. Files with the id of the lock are created after it: if it does not exist, its holder
 * has released it.
 */
async function createLock(directory: string): Promise<Lock> {
  const id = randomBytes(4).toString('hex')
  const path = join(directory, `${id}.lock`)
  if (Buffer.byteLength(path) > LOCK_PATH_BYTES_MAX)
    throw new Error(`the path of the directory is too long: ${directory}`)
  await mkdir(directory, { recursive: true, mode: FOLDER_MODE })
  // A socket rejects connections until the process listens on it. So it has another name until then.
  const address = lockAddress(directory, id, 'bind')
  const server = await listen(address)
  try {
    if (process.platform !== 'win32') await rename(address, path)
  } catch (error) {
    server.close()
    throw error
  }
  return {
    id,
    release: async () => {
      await unlink(path).catch(ignoreMissing)
      await new Promise((resolve) => server.close(resolve))
    },
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

/** @returns the code of the error, if there is one */
function connectTo(address: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(address)
    socket.setTimeout(LOCK_RESPONSE_MS)
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
    socket.once('close', () => resolve(undefined))
    for (const event of ['connect', 'timeout']) socket.once(event, () => socket.destroy())
  })
}

/** Pipes of Windows have no files, and one name. */
function lockAddress(directory: string, id: string, suffix: 'bind' | 'lock'): string {
  const isWindows = process.platform === 'win32'
  return isWindows ? `\\\\.\\pipe\\${join(directory, id)}` : join(directory, `${id}.${suffix}`)
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

export function ignoreMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error
  return undefined
}
