import { parseJson, parseJsonExactly } from '@sluice/rows'
import { limits } from '@sluice/schema'
import { isUtf8 } from 'node:buffer'
import { Problem, problems } from '../problems.ts'

/** The content of a body: one entry, or a batch of values that may be entries. */
export type Submission =
  | { readonly kind: 'entry'; readonly entry: unknown }
  | { readonly kind: 'batch'; readonly entries: readonly unknown[] }

/** The format of a body. */
export interface BodyFormat {
  /** Whether the body has an entry per line, or is one JSON text. */
  readonly isNdjson: boolean
  /** Parses the text of a body. `exact` keeps numbers beyond 2^53 as they are written. @throws Problem */
  readonly parse: (text: string, exact: boolean) => Submission
}

/** @throws Problem `empty_body`, `invalid_utf8` */
export function checkBody(body: Buffer): void {
  if (body.length === 0) throw new Problem('empty_body', problems.empty_body.detail)
  if (!isUtf8(body)) throw new Problem('invalid_utf8', problems.invalid_utf8.detail)
}

export const jsonFormat: BodyFormat = { isNdjson: false, parse: parseJsonBody }

/**
 * Parses a JSON body.
 *
 * @param exact keeps numbers beyond 2^53 as they are written, which is slower
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
  if (!Array.isArray(logs)) throw new Problem('invalid_body', problems.invalid_body.detail)
  return batch(logs)
}

function batch(entries: readonly unknown[]): Submission {
  if (entries.length > limits.entriesPerRequestMax) {
    const detail = `A request may have at most ${limits.entriesPerRequestMax} entries; this one has ${entries.length}.`
    throw new Problem('too_many_entries', detail)
  }
  return { kind: 'batch', entries }
}

/** Parses one JSON text. @throws Problem `invalid_json` */
export function parseText(text: string, exact: boolean): unknown {
  try {
    return exact ? parseJsonExactly(text) : parseJson(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw new Problem('invalid_json', `${error.message}.`)
    // The exact parser is recursive. A text that overflows it is nested thousands of levels deeper than any valid entry.
    if (error instanceof RangeError) throw new Problem('invalid_json', 'The body is nested too deep.')
    throw error
  }
}
