import type { QueuedEntry } from '../entry.ts'
import type { Compression } from '../options.ts'

export interface Body {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly encoding: 'gzip' | 'zstd' | undefined
}

/** A smaller body fits into one packet without compression. */
const COMPRESSED_BYTES_MIN = 1_400

export async function encodeBody(entries: readonly QueuedEntry[], compression: Compression): Promise<Body> {
  const bytes = new TextEncoder().encode(`{"logs":[${entries.map(({ json }) => json).join(',')}]}`)
  if (compression === 'none' || bytes.length < COMPRESSED_BYTES_MIN) return { bytes, encoding: undefined }
  const { zstdCompress, gzip } = nodeCompressors()
  if (compression === 'auto' && zstdCompress !== undefined)
    return { bytes: await compressWith(zstdCompress, bytes), encoding: 'zstd' }
  return {
    bytes: await (gzip === undefined ? gzipStream(bytes) : compressWith(gzip, bytes)),
    encoding: 'gzip',
  }
}

type Compressor = (bytes: Uint8Array, done: (error: unknown, result: Uint8Array<ArrayBuffer>) => void) => void

/**
 * The compressors of Node, which Deno and Bun have too. They work in threads, and need half of the CPU time of a CompressionStream. They
 * are not imported, since browsers do not have them. zstd needs half of gzip's time, and exists in Node from 22.15 on.
 */
function nodeCompressors(): { readonly zstdCompress?: Compressor; readonly gzip?: Compressor } {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } }
  return process?.getBuiltinModule?.('node:zlib') ?? {}
}

function compressWith(compress: Compressor, bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    compress(bytes, (error, result) => (error instanceof Error ? reject(error) : resolve(result)))
  })
}

async function gzipStream(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}
