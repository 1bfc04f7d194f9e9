import { jsonWhitespace } from '@sluice/rows'
import { type EntryError, limits } from '@sluice/schema'
import { Problem } from '../problems.ts'
import { parseText, type BodyFormat, type Submission } from './body.ts'

/** Takes the place of an entry whose line is not JSON. */
export class InvalidLine {
  readonly error: EntryError

  constructor(reason: string) {
    this.error = { path: '', code: 'invalid_json', message: `is not JSON: ${reason}` }
  }
}

/** An entry per line, always a batch: see `parseNdjson`. */
export const ndjsonFormat: BodyFormat = { isNdjson: true, parse: parseNdjson }

/**
 * Parses newline-delimited JSON: an entry per line, always a batch. Lines end with LF or CRLF, optional for the last one. Blank
 * lines are skipped and not counted. A line that is not JSON becomes an `InvalidLine`.
 *
 * @param exact keeps numbers beyond 2^53 as they are written, which is slower
 * @throws Problem `too_many_entries`
 */
function parseNdjson(text: string, exact: boolean): Submission {
  const entries: unknown[] = []
  for (let start = skipBlanks(text, 0); start < text.length;) {
    if (entries.length === limits.entriesPerRequestMax) {
      const detail = `A request may have at most ${limits.entriesPerRequestMax} entries; this one has more lines.`
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
  while (at < text.length && jsonWhitespace.has(text.charCodeAt(at))) at += 1
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
