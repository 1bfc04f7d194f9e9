import type { Batch } from './batch.ts'
import { messageOf } from './encode.ts'
import type { QueuedEntry } from './entry.ts'
import type { Compression, FetchResponse, Settings } from './options.ts'
import { startTimer } from './platform.ts'
import { interpretResponse, type Outcome } from './responses.ts'

/** Far above the largest response: every entry rejected, with all its errors and the longest paths. */
const RESPONSE_BYTES_MAX = 1024 * 1024

/**
 * Makes one attempt to send a batch. Never rejects.
 *
 * @param controller of this attempt. The timeout aborts it too
 */
export async function send(batch: Batch, settings: Settings, controller: AbortController): Promise<Outcome> {
  const { signal } = controller
  const timeout = new DOMException(`no response within ${settings.requestTimeoutMs} ms`, 'TimeoutError')
  const timer = startTimer(() => controller.abort(timeout), settings.requestTimeoutMs)
  try {
    // The attempt may ignore the signal, if the application passed its own `fetch`.
    return await Promise.race([attempt(batch, settings, signal), rejectOnAbort(signal)])
  } catch (cause) {
    const [reason, mayBeStored] = [describeNetworkError(cause), !wasNeverSent(cause)]
    return { kind: 'failed', isTransient: true, reason, cause, mayBeStored }
  } finally {
    clearTimeout(timer)
  }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })
}

async function attempt(
  { entries, idempotencyKey }: Batch,
  { url, apiKey, compression, fetch }: Settings,
  signal: AbortSignal,
): Promise<Outcome> {
  const { bytes: body, encoding } = await encodeBody(entries, compression)
  signal.throwIfAborted()
  const headers = {
    'content-type': 'application/json',
    'idempotency-key': idempotencyKey,
    ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
  }
  // Following a redirect would change the POST into a GET.
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
  const content = await readContent(response)
  const retryAfter = response.headers.get('retry-after')
  return interpretResponse(response.status, retryAfter, content, entries.length)
}

/** Reads the body of a response, and stops at the limit. */
async function readContent(response: FetchResponse): Promise<string> {
  // The application's own `fetch` may have another stream, as node-fetch has.
  const { body } = response as { readonly body?: Partial<ReadableStream<Uint8Array>> | null }
  const reader = body?.getReader?.()
  if (reader === undefined) return response.text()
  const decoder = new TextDecoder()
  let content = ''
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return content + decoder.decode()
    bytes += value.length
    if (bytes > RESPONSE_BYTES_MAX) break
    content += decoder.decode(value, { stream: true })
  }
  await reader.cancel()
  return content
}

/** A smaller body fits into one packet without compression. */
const COMPRESSED_BYTES_MIN = 1_400

export async function encodeBody(
  entries: readonly QueuedEntry[],
  compression: Compression,
): Promise<{ readonly bytes: Uint8Array<ArrayBuffer>; readonly encoding: 'gzip' | 'zstd' | undefined }> {
  const bytes = new TextEncoder().encode(`{"logs":[${entries.map(({ json }) => json).join(',')}]}`)
  if (compression === 'none' || bytes.length < COMPRESSED_BYTES_MIN) return { bytes, encoding: undefined }
  const { zstdCompress, gzip } = nodeCompressors()
  const zstd = compression === 'auto' ? zstdCompress : undefined
  const compress = zstd ?? gzip
  return {
    bytes: await (compress === undefined ? gzipStream(bytes) : compressWith(compress, bytes)),
    encoding: zstd === undefined ? 'gzip' : 'zstd',
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

/**
 * Codes of errors that happen before a connection is established: the API cannot have received the request. The certificate of a server is
 * verified before the first byte of the request.
 */
const neverSentCodes: ReadonlySet<unknown> = new Set(
  (
    'ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH UND_ERR_CONNECT_TIMEOUT ConnectionRefused ' +
    'CERT_HAS_EXPIRED CERT_NOT_YET_VALID CERT_REVOKED CERT_UNTRUSTED CERT_REJECTED CERT_SIGNATURE_FAILURE ' +
    'DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_GET_ISSUER_CERT HOSTNAME_MISMATCH ' +
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY UNABLE_TO_VERIFY_LEAF_SIGNATURE ERR_TLS_CERT_ALTNAME_INVALID'
  ).split(' '),
)

/** Deno has no codes: "error sending request for url (…): client error (Connect): …". */
const NEVER_SENT_IN_DENO = 'client error (Connect)'

/** Errors that wrap each other have fewer levels. A chain of causes may be a circle. */
const LEVELS_MAX = 8

/** Whether what `fetch` threw shows that the request was not sent. Never throws. */
export function wasNeverSent(error: unknown, level = 1): boolean {
  if (typeof error !== 'object' || error === null || level > LEVELS_MAX) return false
  try {
    const { code, syscall, cause, errors, message } = error as Readonly<Record<string, unknown>>
    // A host with several addresses fails with one error for each address.
    if (Array.isArray(errors))
      return errors.length > 0 && errors.every((inner) => wasNeverSent(inner, level + 1))
    // ETIMEDOUT alone does not show it: an established connection can have it too.
    if (neverSentCodes.has(code) || syscall === 'connect') return true
    if (typeof message === 'string' && message.includes(NEVER_SENT_IN_DENO)) return true
    return wasNeverSent(cause, level + 1)
  } catch {
    // An error of the application's own `fetch` that cannot be read.
    return false
  }
}

/** For people: the message of the innermost cause, which names the problem. Never throws. */
export function describeNetworkError(error: unknown, level = 1): string {
  try {
    const { errors, cause } = error as Partial<AggregateError>
    const inner: unknown = Array.isArray(errors) ? errors[0] : cause
    if (inner instanceof Error && level < LEVELS_MAX) return describeNetworkError(inner, level + 1)
  } catch {
    // The message may be readable.
  }
  return messageOf(error)
}
