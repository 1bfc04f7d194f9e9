import { constants } from 'node:fs'
import { open, truncate, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Logs may have secrets: only the owner reads them. */
const FILE_MODE = 0o600

/** What a spool does with files. Tests replace it by a disk that is full. */
export interface Files {
  /** Creates the file if it does not exist. */
  append(path: string, bytes: Uint8Array): Promise<void>
  truncate(path: string, bytes: number): Promise<void>
  /** Removes the file if it exists. */
  remove(path: string): Promise<void>
}

/** @param fsync whether to wait until the disk has the bytes */
export function diskFiles(fsync: boolean): Files {
  return {
    append: (path, bytes) => append(path, bytes, fsync),
    truncate,
    remove: async (path) => {
      await unlink(path).catch(ignoreMissing)
    },
  }
}

async function append(path: string, bytes: Uint8Array, fsync: boolean): Promise<void> {
  const file = await open(path, constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY, FILE_MODE)
  let isNew = false
  try {
    if (fsync) isNew = (await file.stat()).size === 0
    await file.appendFile(bytes)
    if (fsync) await file.datasync()
  } finally {
    await file.close()
  }
  if (isNew) await syncFolder(dirname(path))
}

/** Makes the name of a new file durable. */
async function syncFolder(path: string): Promise<void> {
  // Windows cannot open folders, and does not need it.
  if (process.platform === 'win32') return
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

export function ignoreMissing(error: unknown): void {
  if (!hasCode(error, 'ENOENT')) throw error
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
