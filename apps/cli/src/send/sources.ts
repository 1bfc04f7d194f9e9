import { createReadStream } from 'node:fs'
import { access, constants, stat } from 'node:fs/promises'
import { parse } from 'node:path'
import type { Readable } from 'node:stream'
import { CliError, describeReadError } from '../errors.ts'

/** A file or stream to read lines from. */
export interface Source {
  /** Human-readable. */
  readonly name: string
  /** The default service of the lines: the name of the file without its extension. */
  readonly service: string | undefined
  /** Undefined for streams. */
  readonly bytes: number | undefined
  open(): Readable
}

/**
 * Checks that every file can be read, before the first one is opened. `-`, or no file, is stdin.
 *
 * @throws CliError when a file cannot be read
 */
export async function openSources(files: readonly string[], stdin: Readable): Promise<Source[]> {
  const names = files.length === 0 ? ['-'] : files
  if (names.indexOf('-') !== names.lastIndexOf('-')) throw new CliError('stdin (-) can be read only once')
  return Promise.all(names.map((name) => (name === '-' ? stdinSource(stdin) : fileSource(name))))
}

async function stdinSource(stdin: Readable): Promise<Source> {
  return { name: '(stdin)', ...unknownFile, open: () => stdin }
}

const unknownFile = { service: undefined, bytes: undefined }

async function fileSource(path: string): Promise<Source> {
  const stats = await stat(path).catch(throwReadError(path))
  if (stats.isDirectory()) throw new CliError(`cannot read ${path}: it is a directory`)
  await access(path, constants.R_OK).catch(throwReadError(path))
  // The name and size of a pipe or device have no meaning for its lines.
  const known = stats.isFile() ? { service: parse(path).name, bytes: stats.size } : unknownFile
  return { name: path, ...known, open: () => createReadStream(path) }
}

function throwReadError(path: string): (error: unknown) => never {
  return (error) => {
    const reason = describeReadError(error)
    throw reason === undefined ? error : new CliError(`cannot read ${path}: ${reason}`, { cause: error })
  }
}
