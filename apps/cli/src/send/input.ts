import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { parse } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib'
import { CliError, codeOf, throwReadError } from '../errors.ts'

export interface Source {
  readonly name: string
  /** The default service of the lines: the name of the file without its extension, and without the one of a compression. */
  readonly service: string | undefined
  open(): Readable
}

/** Checks that every file can be read, before the first one is opened. `-`, or no file, is stdin. @throws CliError */
export async function openSources(files: readonly string[], stdin: Readable): Promise<Source[]> {
  const names = files.length === 0 ? ['-'] : files
  if (names.indexOf('-') !== names.lastIndexOf('-')) throw new CliError('stdin (-) can be read only once')
  return Promise.all(
    names.map(async (name) =>
      name === '-' ? { name: '(stdin)', service: undefined, open: () => stdin } : fileSource(name),
    ),
  )
}

async function fileSource(path: string): Promise<Source> {
  const source = { name: path, service: undefined, open: () => createReadStream(path) }
  const stats = await stat(path).catch(throwReadError(path))
  if (stats.isDirectory()) throw new CliError(`cannot read ${path}: it is a directory`)
  // The name of a pipe or device has no meaning for its lines.
  if (!stats.isFile()) return source
  await using file = await open(path).catch(throwReadError(path))
  const { buffer, bytesRead } = await file.read(Buffer.alloc(SIGNATURE_BYTES_MAX)).catch(throwReadError(path))
  findCompression(buffer.subarray(0, bytesRead), path)
  return { ...source, service: parse(path.replace(/\.(?:gz|zst|br)$/, '')).name }
}

type Decompressor = () => NodeJS.ReadWriteStream

/**
 * By the first bytes of the data, in hexadecimal: how Node decompresses it, or what it is and the command that converts it. Each signature
 * has a byte that no log line has, or ten bytes.
 */
const signatures: readonly (readonly [RegExp, Decompressor] | readonly [RegExp, string, string])[] = [
  [/^1f8b08/, () => createGunzip()],
  // The second form is a frame of zstd that is not data: pzstd begins with one.
  [/^(?:28b52ffd|5.2a4d18)/, () => createZstdDecompress()],
  [/^fd377a585a00/, 'compressed (xz)', 'xz -dc'],
  [/^504b0304/, 'compressed (zip)', 'unzip -p'],
  [/^425a683[1-9]314159265359/, 'compressed (bzip2)', 'bzip2 -dc'],
  // As programs of Windows write it, with a byte order mark.
  [/^(?:fffe|feff)/, 'UTF-16', 'iconv -f UTF-16 -t UTF-8'],
]
const SIGNATURE_BYTES_MAX = 10

/** @returns undefined for data that is not compressed @throws CliError when the data has a format that cannot be read here */
function findCompression(start: Buffer, name: string): Decompressor | undefined {
  const hex = start.toString('hex')
  const [, found, command] = signatures.find(([signature]) => signature.test(hex)) ?? []
  if (typeof found === 'string')
    throw new CliError(`cannot read ${name}: it is ${found}; convert it first: ${command} FILE | …`)
  // Brotli has no signature.
  return found ?? (name.endsWith('.br') ? () => createBrotliDecompress() : undefined)
}

/** Yields the bytes of a stream, decompressed if need be. Holds one piece at a time, whatever the compression ratio. @throws CliError */
export async function* decompress(pieces: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  const iterator = pieces[Symbol.asyncIterator]()
  let start: Buffer = Buffer.alloc(0)
  // Not beyond the first line: the lines of an open stream must not wait for others.
  while (start.length < SIGNATURE_BYTES_MAX && !start.includes(NEWLINE)) {
    const next = await iterator.next()
    if (next.done === true) break
    start = Buffer.concat([start, next.value])
  }
  async function* whole(): AsyncGenerator<Buffer> {
    if (start.length > 0) yield start
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  const decompressor = findCompression(start, name)
  if (decompressor === undefined) {
    yield* whole()
    return
  }
  try {
    // The iteration throws the error of any part of the pipeline.
    const output = pipeline(Readable.from(whole()), decompressor(), () => undefined)
    for await (const piece of output) yield piece as Buffer
  } catch (error) {
    if (!DECOMPRESSION_CODES.test(codeOf(error))) throw error
    const reason = 'the compressed data is damaged or incomplete'
    throw new CliError(`cannot read the rest of ${name}: ${reason}`, { cause: error })
  }
}

/** https://nodejs.org/api/zlib.html#zlib-constants */
const DECOMPRESSION_CODES = /^(Z_|ZSTD_|ERR_ZSTD|ERR_ZLIB|ERR__ERROR_)/

export interface Line {
  /** Undefined if the line exceeds the limit; its bytes were discarded. Invalid bytes are replaced by U+FFFD. */
  readonly text: string | undefined
  readonly wasUtf8: boolean
}

const NUL = 0
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const BYTE_ORDER_MARK = '\uFEFF'

/**
 * Splits bytes into lines that end in LF or CRLF. Yields the lines of each piece at once: an iteration per line would cost more than the
 * rest. NUL bytes before a line do not belong to it: a program that keeps its offset in a file that is emptied leaves a hole in it, of any
 * size, and so does a power failure.
 */
export async function* readLines(pieces: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<Line[]> {
  let parts: Buffer[] = []
  let bytes = 0
  let isFirst = true

  function append(text: Buffer): void {
    const start = bytes === 0 ? text.findIndex((byte) => byte !== NUL) : 0
    if (start === -1) return
    const part = text.subarray(start)
    bytes += part.length
    // One byte more than the limit: a carriage return at the end does not count.
    if (bytes > bytesMax + 1) parts = []
    else parts.push(part)
  }

  function finishLine(): Line {
    const [only] = parts
    const joined = parts.length === 1 && only !== undefined ? only : Buffer.concat(parts)
    const line = joined.at(-1) === CARRIAGE_RETURN ? joined.subarray(0, -1) : joined
    const isTooLong = bytes > joined.length || line.length > bytesMax
    const hasMark = isFirst && line.toString('utf8', 0, 3) === BYTE_ORDER_MARK
    parts = []
    bytes = 0
    isFirst = false
    if (isTooLong) return { text: undefined, wasUtf8: true }
    return { text: line.toString('utf8', hasMark ? 3 : 0), wasUtf8: isUtf8(line) }
  }

  for await (const piece of pieces) {
    const lines: Line[] = []
    let from = 0
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      append(piece.subarray(from, end))
      lines.push(finishLine())
      from = end + 1
    }
    append(piece.subarray(from))
    yield lines
  }
  if (bytes > 0) yield [finishLine()]
}
