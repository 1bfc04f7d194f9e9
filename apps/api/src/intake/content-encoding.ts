import { limits } from '@sluice/schema'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { Problem, retryAfter } from '../problems.ts'
import { FairQueue } from '../turns.ts'

/** The result of the decoders with `info: true`, which Node's types do not declare. */
interface Decoded {
  readonly buffer: Buffer
  /** `bytesWritten` is the number of encoded bytes that were read. */
  readonly engine: { readonly bytesWritten: number }
}

export const decodingLimits = {
  /** Larger bodies are decoded in a thread: many small frames take longer than their content. */
  encodedBytesMax: 64 * 1024,
  /**
   * Bodies that become larger are decoded once more, in a thread. Decoding this much takes about a millisecond. A thread would cost
   * 100 µs for each body.
   */
  decodedBytesMax: 256 * 1024,
  /**
   * Bodies that become this many times as large are decoded in a thread too: log entries shrink to a tenth, so it is probably an attack.
   * Dozens of them in one turn of the event loop took 80 ms.
   */
  decodedPerEncodedMax: 64,
  /**
   * One processor is left for the event loop. Each thread may hold one body after decoding. Node has four threads, and uses them for
   * files and names as well.
   */
  threadsMax: Math.max(1, Math.min(3, availableParallelism() - 1)),
  /** Encoded bodies that wait for a thread. More would wait for more than a second. The budget of bodies bounds their bytes. */
  waitingMax: 200,
  /** Half: one project cannot take all places. */
  projectWaitingMax: 100,
} as const

/** How a content encoding is decoded: a small body on the event loop, or any body in a thread. */
export interface Decoder {
  readonly now: (encoded: Buffer, options: object) => unknown
  readonly inThread: (encoded: Buffer, options: object) => Promise<unknown>
  readonly params?: Readonly<Record<number, number>>
}

/** @param bytesMax decoding stops here: a decompression bomb costs as much as a large body */
const optionsOf = ({ params = {} }: Decoder, bytesMax: number = limits.bodyBytesMax) => ({
  maxOutputLength: bytesMax,
  // Bytes decoded in one step. Most small bodies are smaller.
  chunkSize: bytesMax === limits.bodyBytesMax ? 256 * 1024 : 32 * 1024,
  info: true,
  params,
})

const gzip: Decoder = { now: zlib.gunzipSync, inThread: promisify(zlib.gunzip) }
const inflate: Decoder = { now: zlib.inflateSync, inThread: promisify(zlib.inflate) }
const inflateRaw: Decoder = { now: zlib.inflateRawSync, inThread: promisify(zlib.inflateRaw) }
// RFC 9110 (8.4.1.2) means the zlib format. Some clients omit its wrapper.
const deflated = (encoded: Buffer): Decoder => (isZlib(encoded) ? inflate : inflateRaw)

const decoders: ReadonlyMap<string, Decoder> = new Map([
  ['gzip', gzip],
  ['x-gzip', gzip],
  [
    'deflate',
    {
      now: (encoded, options) => deflated(encoded).now(encoded, options),
      inThread: (encoded, options) => deflated(encoded).inThread(encoded, options),
    },
  ],
  [
    'br',
    {
      now: zlib.brotliDecompressSync,
      inThread: promisify(zlib.brotliDecompress),
      // Brotli's window is at most 16 MiB (RFC 7932); larger windows are an extension.
      params: { [zlib.constants.BROTLI_DECODER_PARAM_LARGE_WINDOW]: 0 },
    },
  ],
  [
    'zstd',
    {
      now: zlib.zstdDecompressSync,
      inThread: promisify(zlib.zstdDecompress),
      // 8 MiB: the window that RFC 8878 (3.1.1.1.2) requires of every decoder, and RFC 9659 allows as a content encoding. A frame that
      // needs more memory is rejected.
      params: { [zlib.constants.ZSTD_d_windowLogMax]: 23 },
    },
  ],
])

export const contentEncodings: readonly string[] = ['identity', ...decoders.keys()]

/** The decoder for a Content-Encoding header. Undefined for a body that is sent as it is. @throws Problem `unsupported_encoding` */
export function decoderFor(header: string | undefined): Decoder | undefined {
  if (header === undefined) return undefined
  const encoding = header.toLowerCase()
  const decoder = decoders.get(encoding)
  if (decoder !== undefined || encoding === 'identity') return decoder
  // RFC 9110, 15.5.16.
  throw new Problem('unsupported_encoding', undefined, {
    headers: { 'accept-encoding': 'gzip, deflate, br, zstd' },
  })
}

/** Decodes a small body at once. @returns undefined if it is not small: see `ContentDecoder` @throws Problem `invalid_encoding` */
export function decodeSmall(body: Buffer, decoder: Decoder): Buffer | undefined {
  if (body.length === 0) return body
  const { encodedBytesMax, decodedBytesMax, decodedPerEncodedMax } = decodingLimits
  if (body.length > encodedBytesMax) return undefined
  let decoded: Decoded
  try {
    const bytesMax = Math.min(decodedBytesMax, decodedPerEncodedMax * body.length)
    decoded = decoder.now(body, optionsOf(decoder, bytesMax)) as Decoded
  } catch (error) {
    return isTooLarge(error) ? undefined : reject(error)
  }
  return complete(decoded, body)
}

/** Decodes bodies in threads. Those of a project are decoded in the order of their arrival, and projects take turns. */
export class ContentDecoder {
  #running = 0
  readonly #queue = new FairQueue<() => void>()

  /** @throws Problem `body_too_large`, `invalid_encoding`; `overloaded` if too many bodies wait */
  async decode(body: Buffer, decoder: Decoder, projectId: string): Promise<Buffer> {
    const { threadsMax, waitingMax, projectWaitingMax } = decodingLimits
    if (this.#running >= threadsMax) {
      if (this.#queue.size >= waitingMax || this.#queue.sizeOf(projectId) >= projectWaitingMax)
        throw retryAfter('overloaded', 1)
      await new Promise<void>((resolve) => this.#queue.push(projectId, resolve))
    }
    this.#running += 1
    try {
      return complete((await decoder.inThread(body, optionsOf(decoder)).catch(reject)) as Decoded, body)
    } finally {
      this.#running -= 1
      this.#queue.shift()?.()
    }
  }
}

function complete({ buffer, engine }: Decoded, body: Buffer): Buffer {
  if (engine.bytesWritten === body.length) return buffer
  throw new Problem('invalid_encoding', 'The body continues after the end of its content.')
}

function isTooLarge(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
}

function reject(error: unknown): never {
  if (!isTooLarge(error))
    throw new Problem('invalid_encoding', `The body cannot be decoded: ${(error as Error).message}.`)
  const detail = `A body may have at most ${limits.bodyBytesMax} bytes after decoding. Send fewer entries per request.`
  throw new Problem('body_too_large', detail)
}

/** Whether it starts with a zlib header (RFC 1950, 2.2): the method deflate, and a checksum over the two bytes. */
function isZlib(encoded: Buffer): boolean {
  const [method = 0, flags = 0] = encoded
  return (method & 0x0f) === 8 && ((method << 8) | flags) % 31 === 0
}
