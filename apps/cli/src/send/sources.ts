import { createReadStream } from 'node:fs'
import { access, constants, open, stat } from 'node:fs/promises'
import { parse } from 'node:path'
import type { Readable } from 'node:stream'
import { CliError, throwReadError } from '../errors.ts'
import { detectCompression, requireReadable, signatureBytesMax } from './decoding.ts'

/** A file or stream to read lines from. */
export interface Source {
  /** Human-readable. */
  readonly name: string
  /** The default service of the lines: the name of the file without its extension, and without that of a compression. */
  readonly service: string | undefined
  /** The size of the lines. Undefined for streams and compressed files. */
  readonly bytes: number | undefined
  /** The bytes of the file, which may be compressed. */
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
  const known = stats.isFile() ? await describeFile(path, stats.size) : unknownFile
  return { name: path, ...known, open: () => createReadStream(path) }
}

async function describeFile(path: string, bytes: number): Promise<Pick<Source, 'service' | 'bytes'>> {
  const format = detectCompression(await readStart(path).catch(throwReadError(path)), path)
  requireReadable(format, path)
  const { name } = parse(path)
  return format === undefined
    ? { service: name, bytes }
    : { service: /\.(?:gz|zst|br)$/.test(path) ? parse(name).name : name, bytes: undefined }
}

async function readStart(path: string): Promise<Buffer> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(signatureBytesMax), 0, signatureBytesMax, 0)
  return buffer.subarray(0, bytesRead)
}
