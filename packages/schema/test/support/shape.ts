import { type Entry, type EntryError, EntryValidator } from '../../src/entry.ts'
import { rowAsJson, type ShapedRow, shapeRow, startRows } from '../../src/rows.ts'

export const ID = '01a1fb4d-5bd1-74f9-83e0-56d2211cd84d'

export const stamp = {
  projectId: 'demo',
  retentionDays: 30,
  receivedAtMs: Date.UTC(2026, 10, 20, 23, 59, 59, 999),
} as const

const validator = new EntryValidator()

/** Shapes what must be valid in its structure, looking for lone surrogates. */
export function shape(value: unknown): ShapedRow {
  if (!validator.isEntry(value)) throw new Error(JSON.stringify(validator.explain(value)))
  const entry: Entry = value
  return shapeRow(entry, ID, startRows(stamp), true)
}

/** The row that a sent text becomes. */
export function rowOf(text: string): string {
  const shaped = shape(JSON.parse(text))
  if ('error' in shaped) throw new Error(`${shaped.error.path} ${shaped.error.code}`)
  return shaped.row
}

/** The columns of the row that a sent text becomes. */
export function readRow(text: string): Record<string, string> {
  return JSON.parse(rowAsJson(rowOf(text)) ?? '') as Record<string, string>
}

/** The text of the metadata that a sent text becomes. */
export function metadataOf(text: string): string | undefined {
  return readRow(text)['metadata_text']
}

/** What is wrong with a sent text. */
export function errorOf(text: string): EntryError {
  const shaped = shape(JSON.parse(text))
  if ('row' in shaped) throw new Error('the entry was taken')
  return shaped.error
}
