import { jsonBlanks, limits, type EntryError } from '@sluice/schema'
import { Problem } from '../problems.ts'
import { parseText, type BodyFormat, type Submission } from './body.ts'

/** A line that is no JSON: stands for the entry that it should have been. */
export class InvalidLine {
  readonly error: EntryError

  constructor(reason: string) {
    this.error = { path: '', code: 'invalid_json', message: `is not JSON: ${reason}` }
  }
}

/** An entry a line, always a batch: see `parseNdjson`. */
export const ndjsonFormat: BodyFormat = { isNdjson: true, parse: parseNdjson }

/**
 * The content of a body of newline-delimited JSON: an entry a line, always a batch. Lines end in LF or CRLF, the last one
 * need not; blank ones are skipped and not counted. A line that is no JSON becomes an `InvalidLine`.
 *
 * @param exact keeps numbers beyond 2^53 as they are written, at a cost
 * @throws Problem `too_many_entries`
 */
function parseNdjson(text: string, exact: boolean): Submission {
  const entries: unknown[] = []
  for (let start = skipBlanks(text, 0); start < text.length;) {
    if (entries.length === limits.entriesPerBatchMax) {
      const detail = `A request may have at most ${limits.entriesPerBatchMax} entries; this one has more lines.`
      throw new Problem('too_many_entries', detail)
    }
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    entries.push(parseLine(text.slice(start, end), exact))
    start = skipBlanks(text, end)
  }
  return { kind: 'batch', entries }
}

function skipBlanks(text: string, from: number): number {
  let at = from
  while (at < text.length && jsonBlanks.has(text.charCodeAt(at))) at += 1
  return at
}

function parseLine(line: string, exact: boolean): unknown {
  try {
    return parseText(line, exact)
  } catch (error) {
    if (error instanceof Problem) return new InvalidLine(error.message)
    throw error
  }
}
