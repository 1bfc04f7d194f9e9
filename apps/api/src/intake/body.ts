import { limits, parseJson, parseJsonExactly } from '@sluice/schema'
import { isUtf8 } from 'node:buffer'
import { Problem } from '../problems.ts'

/** What a body holds: an entry, or a batch of values that may be entries. */
export type Submission =
  | { readonly kind: 'entry'; readonly entry: unknown }
  | { readonly kind: 'batch'; readonly entries: readonly unknown[] }

/** Parses the text of a body; `exact` keeps numbers beyond 2^53 as they are written. @throws Problem */
export type BodyParser = (text: string, exact: boolean) => Submission

/** What a body is written in. */
export interface BodyFormat {
  /** Whether it is an entry a line, and not one JSON text. */
  readonly isNdjson: boolean
  readonly parse: BodyParser
}

/** Gives back what is a body of text. @throws Problem `empty_body`, `invalid_utf8` */
export function checkBody(body: Buffer | undefined): Buffer {
  if (body === undefined || body.length === 0)
    throw new Problem('empty_body', 'Send an entry or a batch as JSON.')
  if (!isUtf8(body)) throw new Problem('invalid_utf8', 'The body must be UTF-8.')
  return body
}

export const jsonFormat: BodyFormat = { isNdjson: false, parse: parseJsonBody }

/**
 * A JSON body's content.
 *
 * @param exact keeps numbers beyond 2^53 as they are written, at a cost
 * @throws Problem `invalid_json`, `invalid_body`, `too_many_entries`
 */
function parseJsonBody(text: string, exact: boolean): Submission {
  const value = parseText(text, exact)
  if (Array.isArray(value)) return batch(value)
  if (typeof value !== 'object' || value === null) {
    throw new Problem('invalid_body', 'Send an entry object, {"logs": [entries]} or an array of entries.')
  }
  if (!Object.hasOwn(value, 'logs')) return { kind: 'entry', entry: value }
  const { logs } = value as { logs: unknown }
  if (!Array.isArray(logs)) throw new Problem('invalid_body', '"logs" must be an array of entries.')
  return batch(logs)
}

function batch(entries: readonly unknown[]): Submission {
  if (entries.length > limits.entriesPerBatchMax) {
    const detail = `A request may have at most ${limits.entriesPerBatchMax} entries; this one has ${entries.length}.`
    throw new Problem('too_many_entries', detail)
  }
  return { kind: 'batch', entries }
}

/** One JSON text's value. @throws Problem `invalid_json` */
export function parseText(text: string, exact: boolean): unknown {
  try {
    return exact ? parseJsonExactly(text) : parseJson(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw new Problem('invalid_json', `${error.message}.`)
    // Where V8's parser alone does not do, recursion comes in; what overflows it is nested thousands of times deeper than any entry may be.
    if (error instanceof RangeError) throw new Problem('invalid_json', 'The body is nested too deep.')
    throw error
  }
}
