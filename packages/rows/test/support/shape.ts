import type { Entry, EntryError } from '@sluice/schema'
import { EntryValidator } from '../../src/entry-validator.ts'
import { makeRowPrefix, rowAsJson } from '../../src/row-codec.ts'
import { type ShapedRow, shapeRow } from '../../src/shape-row.ts'

export const ID = '01a1fb4d-5bd1-74f9-83e0-56d2211cd84d'

export const stamp = {
  projectId: 'demo',
  retentionDays: 30,
  receivedAtMs: Date.UTC(2026, 10, 20, 23, 59, 59, 999),
} as const

const validator = new EntryValidator()

/** Shapes an entry, which must have a valid structure. Checks for lone surrogates. */
function shape(value: unknown): ShapedRow {
  if (!validator.isEntry(value)) throw new Error(JSON.stringify(validator.explain(value)))
  const entry: Entry = value
  return shapeRow(entry, ID, makeRowPrefix(stamp), true)
}

/** The row made from the JSON of an entry. */
export function rowOf(text: string): string {
  const shaped = shape(JSON.parse(text))
  if ('error' in shaped) throw new Error(`${shaped.error.path} ${shaped.error.code}`)
  return shaped.row
}

/** The columns of the row made from the JSON of an entry. */
export function readRow(text: string): Record<string, string> {
  return JSON.parse(rowAsJson(rowOf(text)) ?? '') as Record<string, string>
}

/** The error in the JSON of an entry. */
export function errorOf(text: string): EntryError {
  const shaped = shape(JSON.parse(text))
  if ('row' in shaped) throw new Error('the entry was accepted')
  return shaped.error
}
