import { isUtf8 } from 'node:buffer'
import { Problem, problems } from '../problems.ts'
import { type EntryFinder, JsonEntryFinder } from './entry-finder.ts'
import { NdjsonEntryFinder } from './ndjson.ts'

/** The format of a body. */
export interface BodyFormat {
  /** Whether the body has an entry per line, or is one JSON text. */
  readonly isNdjson: boolean
  readonly findEntries: (body: Buffer) => EntryFinder
}

export const jsonFormat: BodyFormat = {
  isNdjson: false,
  findEntries: (body) => new JsonEntryFinder(body),
}

export const ndjsonFormat: BodyFormat = {
  isNdjson: true,
  findEntries: (body) => new NdjsonEntryFinder(body),
}

/** @throws Problem `empty_body` */
export function checkNotEmpty(body: Buffer): void {
  if (body.length === 0) throw new Problem('empty_body', problems.empty_body.detail)
}

/** @throws Problem `empty_body`, `invalid_utf8` */
export function checkBody(body: Buffer): void {
  checkNotEmpty(body)
  if (!isUtf8(body)) throw new Problem('invalid_utf8', problems.invalid_utf8.detail)
}
