import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a folder that only its owner can read, and the parents that are missing.
 *
 * Node's own recursive `mkdir` never returns where a file system does not allow new folders, for example below /proc.
 */
export function makeFolder(path: string): void {
  if (isFolder(path)) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!isFolder(path)) throw error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/**
 * Whether an error is about the data folder or a file in it: it has no permission, is a file, is on a full disk.
 *
 * @param dataDir an absolute path
 */
export function concernsDataFolder(error: unknown, dataDir: string): error is Error {
  if (!(error instanceof Error) || !('code' in error)) return false
  // SQLite, which locks the folder, reports no path.
  if (error.code === 'ERR_SQLITE_ERROR') return true
  if (!('path' in error) || typeof error.path !== 'string') return false
  return error.path.startsWith(dataDir) || dataDir.startsWith(error.path)
}
