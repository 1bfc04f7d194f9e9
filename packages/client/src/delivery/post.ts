import type { FetchResponse } from '../fetch.ts'
import type { Settings } from '../options.ts'
import { startTimer } from '../timers.ts'
import { type Answer, interpretAnswer } from './answers.ts'
import type { Batch } from './batch.ts'
import { encodeBody } from './body.ts'
import { describeNetworkError, wasNeverSent } from './network-error.ts'
import type { Stop } from './stop.ts'

/** Far above the largest response: every entry rejected, with all its errors and the longest paths. */
const RESPONSE_BYTES_MAX = 1024 * 1024

export type PostSettings = Pick<Settings, 'url' | 'apiKey' | 'compression' | 'requestTimeoutMs' | 'fetch'>

export interface PostResult {
  readonly answer: Answer
  readonly hasResponse: boolean
}

/**
 * Makes one attempt to send a batch. Never rejects.
 *
 * @param stop aborts the attempt
 */
export async function postBatch(
  batch: Batch,
  settings: PostSettings,
  stop: Stop,
  wallMs: () => number,
): Promise<PostResult> {
  const abort = new AbortController()
  const unsubscribe = stop.subscribe(() => abort.abort(new Error('the client was closed')))
  const timeout = new DOMException(`no response within ${settings.requestTimeoutMs} ms`, 'TimeoutError')
  const timer = startTimer(() => abort.abort(timeout), settings.requestTimeoutMs)
  try {
    // The attempt may ignore the signal, if the application passed its own `fetch`.
    return await Promise.race([attempt(batch, settings, abort.signal, wallMs), rejectOnAbort(abort.signal)])
  } catch (error) {
    return {
      hasResponse: false,
      answer: {
        kind: 'failed',
        reason: describeNetworkError(error),
        status: undefined,
        cause: error,
        retryAfterMs: undefined,
        mayBeStored: !wasNeverSent(error),
      },
    }
  } finally {
    clearTimeout(timer)
    unsubscribe()
  }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })
}

async function attempt(
  { entries, idempotencyKey }: Batch,
  { url, apiKey, compression, fetch }: PostSettings,
  signal: AbortSignal,
  wallMs: () => number,
): Promise<PostResult> {
  const { bytes, encoding } = await encodeBody(entries, compression)
  signal.throwIfAborted()
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': idempotencyKey,
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
    },
    body: bytes,
    // Following a redirect would turn the POST into a GET.
    redirect: 'manual',
    signal,
  })
  const text = await readText(response)
  const retryAfter = response.headers.get('retry-after')
  return {
    answer: interpretAnswer(response.status, retryAfter, text, entries.length, wallMs()),
    hasResponse: true,
  }
}

/** Reads the body of a response, and stops at the limit. */
async function readText(response: FetchResponse): Promise<string> {
  // The application's own `fetch` may have another stream, as node-fetch has.
  if (!isWebStream(response.body)) return response.text()
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    bytes += value.length
    if (bytes > RESPONSE_BYTES_MAX) break
    text += decoder.decode(value, { stream: true })
  }
  await reader.cancel()
  return text
}

function isWebStream(body: unknown): body is ReadableStream<Uint8Array> {
  return typeof body === 'object' && body !== null && 'getReader' in body
}
