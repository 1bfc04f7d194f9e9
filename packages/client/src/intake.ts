import { deferred } from './deferred.ts'
import { Batch } from './delivery/batch.ts'
import type { Delivery } from './delivery/delivery.ts'
import type { Settlements } from './delivery/settlements.ts'
import { entryText } from './encoding/entry-text.ts'
import { utf8Bytes } from './encoding/utf8.ts'
import type { Entry, EntryError } from './entry.ts'
import type { Settlement } from './hooks.ts'
import { readRequest } from './keyed-request.ts'
import { contractLimits } from './limits.ts'
import type { EntryIntake } from './logger.ts'

/** Reserved for the request around an entry that is sent alone. */
const ENVELOPE_BYTES_MAX = 64

/** Encodes entries and queues them. */
export class Intake implements EntryIntake {
  readonly #delivery: Delivery
  readonly #settlements: Settlements
  readonly #wallMs: () => number
  #timestamp = ''
  #timestampMs = -1
  #isClosed = false

  constructor(delivery: Delivery, settlements: Settlements, wallMs: () => number) {
    this.#delivery = delivery
    this.#settlements = settlements
    this.#wallMs = wallMs
  }

  add(entry: Entry, tag: unknown): void {
    this.#queue(entryText(entry), tag)
  }

  addJson(json: string, tag: unknown): void {
    if (typeof json !== 'string')
      return this.reject(json, { path: '', code: 'wrong_type', message: 'must be JSON text' }, tag)
    if (utf8Bytes(json) + ENVELOPE_BYTES_MAX <= contractLimits.bodyBytesMax)
      return this.#queue(toOneLine(json), tag)
    const message = `must have at most ${contractLimits.bodyBytesMax - ENVELOPE_BYTES_MAX} bytes`
    this.reject(json, { path: '', code: 'too_large', message }, tag)
  }

  /** @throws TypeError if the API would certainly reject the request */
  addRequest(texts: readonly string[], idempotencyKey: string): Promise<Settlement> {
    const entries = readRequest(texts, idempotencyKey)
    const { promise, resolve } = deferred<Settlement>()
    // Without a record in the spool: who chooses the key can make the same request again.
    const batch = new Batch(idempotencyKey, 0, { onSettlement: resolve })
    for (const entry of entries) batch.add(entry)
    if (this.#isClosed) this.#settlements.dropped(batch, 'closed')
    else this.#delivery.addRequest(batch)
    return promise
  }

  reject(entry: unknown, error: EntryError, tag: unknown): void {
    this.#settlements.rejectedEntry(entry, error, tag)
  }

  timestamp(): string {
    const nowMs = this.#wallMs()
    // Many entries have the same millisecond, and the conversion costs as much as a part of the JSON.
    if (nowMs !== this.#timestampMs) {
      this.#timestampMs = nowMs
      this.#timestamp = new Date(nowMs).toISOString()
    }
    return this.#timestamp
  }

  /** Drops all further entries. */
  close(): void {
    this.#isClosed = true
  }

  #queue(json: string, tag: unknown): void {
    const entry = { json, bytes: utf8Bytes(json), tag }
    if (this.#isClosed) this.#settlements.droppedEntry(entry, 'closed')
    else this.#delivery.add(entry)
  }
}

/** A spool has one entry per line. In JSON, line breaks are only white space: texts have escapes. */
function toOneLine(json: string): string {
  return json.replaceAll(/[\r\n]+/g, ' ')
}
