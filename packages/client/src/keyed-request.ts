import { utf8Bytes } from './encoding/utf8.ts'
import type { QueuedEntry } from './entry.ts'
import { contractLimits } from './limits.ts'

/** Visible ASCII, as the API accepts it. */
const KEY = /^[!-~]{1,255}$/
/** `{"logs":[` and `]}`. */
const ENVELOPE_BYTES = 11

/**
 * Checks a request that the caller made.
 *
 * @param texts entries as JSON texts
 * @throws TypeError
 */
export function readRequest(texts: readonly string[], idempotencyKey: string): QueuedEntry[] {
  if (typeof idempotencyKey !== 'string' || !KEY.test(idempotencyKey))
    throw new TypeError('the idempotency key must have 1 to 255 visible ASCII characters')
  const { entriesPerRequestMax, bodyBytesMax } = contractLimits
  if (!Array.isArray(texts) || texts.length < 1 || texts.length > entriesPerRequestMax)
    throw new TypeError(`a request must have 1 to ${entriesPerRequestMax} entries`)
  const entries = texts.map(toQueuedEntry)
  const bytes = entries.reduce((sum, entry) => sum + entry.bytes, ENVELOPE_BYTES + entries.length - 1)
  if (bytes > bodyBytesMax) throw new TypeError(`a request must have at most ${bodyBytesMax} bytes`)
  return entries
}

function toQueuedEntry(json: unknown): QueuedEntry {
  if (typeof json !== 'string' || json.trim() === '') throw new TypeError('each entry must be JSON text')
  return { json, bytes: utf8Bytes(json), tag: undefined }
}
