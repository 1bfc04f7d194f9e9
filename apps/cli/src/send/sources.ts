import { createReadStream } from 'node:fs'
import { access, constants, stat } from 'node:fs/promises'
import { parse } from 'node:path'
import type { Readable } from 'node:stream'
import { CliError } from '../errors.ts'

/** Where lines come from. */
export interface Source {
  /** For people. */
  readonly name: string
  /** What a file's name says of who wrote it: the name without its extension. */
  readonly service: string | undefined
  /** Undefined for streams. */
  readonly bytes: number | undefined
  open(): Readable
}

/**
 * The files to be sent, all of them looked at before the first is read; `-`, or no file, is the standard input.
 *
 * @throws CliError when one cannot be read
 */
export async function openSources(files: readonly string[], stdin: Readable): Promise<Source[]> {
  const names = files.length === 0 ? ['-'] : files
  if (names.indexOf('-') !== names.lastIndexOf('-')) throw new CliError('the standard input can be read once')
  return Promise.all(names.map((name) => (name === '-' ? stdinSource(stdin) : fileSource(name))))
}

async function stdinSource(stdin: Readable): Promise<Source> {
  return { name: '(standard input)', ...noFile, open: () => stdin }
}

const noFile = { service: undefined, bytes: undefined }

async function fileSource(path: string): Promise<Source> {
  const stats = await stat(path).catch(unreadable(path))
  if (stats.isDirectory()) throw new CliError(`cannot read ${path}: it is a directory`)
  await access(path, constants.R_OK).catch(unreadable(path))
  // The name and the size of a pipe or a device say nothing.
  const known = stats.isFile() ? { service: parse(path).name, bytes: stats.size } : noFile
  return { name: path, ...known, open: () => createReadStream(path) }
}

function unreadable(path: string): (error: unknown) => never {
  return (error) => {
    const reason = describeReadError(error)
    throw reason === undefined ? error : new CliError(`cannot read ${path}: ${reason}`)
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'it is not allowed',
}

/** Why a file could not be opened or read on; undefined for errors of another kind. */
export function describeReadError(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('syscall' in error)) return undefined
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return reasons[code] ?? error.message
}
