import { pipeline, Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib'
import { CliError } from '../errors.ts'

interface Compression {
  readonly name: string
  /** Absent for formats that Node cannot decompress. */
  readonly decompressor?: () => NodeJS.ReadWriteStream
  /** A command that decompresses a file. */
  readonly command: string
}

interface Format extends Compression {
  /** The first bytes of the data, in Latin-1. */
  readonly signature: string
}

const zstd: Compression = {
  name: 'zstd',
  decompressor: () => createZstdDecompress(),
  command: 'zstd -dc',
}

/** Each signature contains a byte that text does not have, or is ten characters long. */
const formats: readonly Format[] = [
  { name: 'gzip', signature: '\u001F\u008B\b', decompressor: () => createGunzip(), command: 'gzip -dc' },
  { ...zstd, signature: '(\u00B5/\u00FD' },
  // Frames that are not data: pzstd begins with one.
  ...Array.from('PQRSTUVWXYZ[\\]^_', (first) => ({ ...zstd, signature: `${first}*M\u0018` })),
  { name: 'xz', signature: '\u00FD7zXZ\u0000', command: 'xz -dc' },
  { name: 'zip', signature: 'PK\u0003\u0004', command: 'unzip -p' },
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((level) => ({
    name: 'bzip2',
    signature: `BZh${level}1AY&SY`,
    command: 'bzip2 -dc',
  })),
]

/** Has no signature: only the name of a file shows it. */
const brotli: Compression = {
  name: 'brotli',
  decompressor: () => createBrotliDecompress(),
  command: 'brotli -dc',
}

export const signatureBytesMax = Math.max(...formats.map(({ signature }) => signature.length))

/**
 * @param start the first bytes of the data, `signatureBytesMax` or all of them
 * @param name of the file
 */
export function detectCompression(start: Buffer, name: string): Compression | undefined {
  const text = start.toString('latin1', 0, signatureBytesMax)
  const format = formats.find(({ signature }) => text.startsWith(signature))
  return format ?? (name.endsWith('.br') ? brotli : undefined)
}

/** @throws CliError when the data is compressed in a format that cannot be decompressed here */
export function requireReadable(format: Compression | undefined, name: string): void {
  if (format === undefined || format.decompressor !== undefined) return
  throw new CliError(
    `cannot read ${name}: it is compressed (${format.name}); decompress it first: ${format.command} FILE | …`,
  )
}

/**
 * Yields the bytes of a stream, decompressed if it is compressed with gzip, zstd or brotli. Holds one piece of the stream at a
 * time, whatever its compression ratio.
 *
 * @param name of the file, or of the stream for errors
 * @throws CliError
 */
export async function* decompress(stream: Readable, name: string): AsyncGenerator<Buffer> {
  const pieces = (stream as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  try {
    const start = await readStart(pieces)
    const format = detectCompression(start, name)
    requireReadable(format, name)
    const whole = prepend(start, { [Symbol.asyncIterator]: () => pieces })
    if (format?.decompressor === undefined) yield* whole
    else yield* decompressWith(format.decompressor(), whole, name)
  } finally {
    // Stdin that is still open would keep the process alive.
    stream.destroy()
  }
}

/** Reads as little as shows whether there is a signature: the first lines of an open stream must not wait for others. */
async function readStart(pieces: AsyncIterator<Buffer>): Promise<Buffer> {
  let start: Buffer = Buffer.alloc(0)
  while (mayBecomeSignature(start)) {
    const next = await pieces.next()
    if (next.done === true) break
    start = Buffer.concat([start, next.value])
  }
  return start
}

function mayBecomeSignature(start: Buffer): boolean {
  const text = start.toString('latin1', 0, signatureBytesMax)
  return formats.some(({ signature }) => signature.length > text.length && signature.startsWith(text))
}

async function* prepend(start: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (start.length > 0) yield start
  yield* rest
}

async function* decompressWith(
  decompressor: NodeJS.ReadWriteStream,
  input: AsyncIterable<Buffer>,
  name: string,
): AsyncGenerator<Buffer> {
  // The iteration throws the error of any part of the pipeline.
  const output = pipeline(Readable.from(input), decompressor, () => undefined)
  try {
    for await (const piece of output) yield piece as Buffer
  } catch (error) {
    if (!isDecompressionError(error)) throw error
    const message = `cannot read the rest of ${name}: the compressed data is damaged or incomplete`
    throw new CliError(message, { cause: error })
  }
}

/** Node's codes: https://nodejs.org/api/zlib.html#zlib-constants */
function isDecompressionError(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    /^(Z_|ZSTD_|ERR_ZSTD|ERR_ZLIB|ERR__ERROR_)/.test(String(error.code))
  )
}

/** The first bytes of texts in UTF-16, as programs of Windows write them. UTF-8 has none of these bytes. */
const utf16Marks = [
  { encoding: 'utf-16le', mark: Buffer.from([0xff, 0xfe]) },
  { encoding: 'utf-16be', mark: Buffer.from([0xfe, 0xff]) },
] as const

/** @param start the first two bytes of a text @returns undefined for UTF-8 and everything else */
function detectUtf16(start: Buffer): (typeof utf16Marks)[number]['encoding'] | undefined {
  return utf16Marks.find(({ mark }) => start.subarray(0, mark.length).equals(mark))?.encoding
}

/** Yields a text in UTF-8. A text is in UTF-16 if it begins with a byte order mark of that. */
export async function* toUtf8(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let start: Buffer | undefined = Buffer.alloc(0)
  let decoder: TextDecoder | undefined
  for await (const piece of pieces) {
    if (start === undefined) {
      yield decoder === undefined ? piece : Buffer.from(decoder.decode(piece, { stream: true }))
      continue
    }
    const known: Buffer = Buffer.concat([start, piece])
    start = known
    // One byte of a mark: the next one decides. Text must not wait.
    if (known.length === 0 || (known.length === 1 && (known[0] ?? 0) >= 0xfe)) continue
    start = undefined
    const encoding = detectUtf16(known)
    decoder = encoding === undefined ? undefined : new TextDecoder(encoding)
    yield decoder === undefined ? known : Buffer.from(decoder.decode(known, { stream: true }))
  }
  if (decoder !== undefined) yield Buffer.from(decoder.decode())
  else if (start !== undefined && start.length > 0) yield start
}
