import { rowAsJson } from '@sluice/rows'
import { textPrefix, textOfBlocks } from '@sluice/rows/testing'
import type { ScanError } from '../../src/errors.ts'
import { Scanner } from '../../src/index.ts'
import { ID } from './reference.ts'

let nowMs = 0
/** Each body has the same ids. */
const scanner = new Scanner({ reserve: () => ID }, () => (nowMs += 1), {
  rowsMax: 2_000,
  bytesMax: 1_000_000,
})
const prefix = textPrefix({
  projectId: 'demo',
  retentionDays: 30,
  receivedAtMs: Date.UTC(2026, 10, 20, 23, 59, 59, 999),
})

/** The row that the scanner makes of the JSON of an entry, or its errors. */
export function scanEntry(text: string): { readonly row: string; readonly errors: readonly ScanError[] } {
  return scanner.scan(Buffer.from(`[${text}]`), prefix, false, ({ rows, errors }) => {
    const bytes = Buffer.alloc(rows.byteLength)
    rows.copyTo(bytes, 0)
    return { row: textOfBlocks(bytes), errors }
  })
}

/** The row made from the JSON of an entry. */
export function rowOf(text: string): string {
  const { row, errors } = scanEntry(text)
  if (errors.length > 0) throw new Error(JSON.stringify(errors))
  return row
}

/** The columns of the row made from the JSON of an entry. */
export function readRow(text: string): Record<string, string> {
  return JSON.parse(rowAsJson(rowOf(text)) ?? '') as Record<string, string>
}

/** The only error in the JSON of an entry. */
export function errorOf(text: string): ScanError {
  const { errors } = scanEntry(text)
  const [error] = errors
  if (error === undefined || errors.length > 1) throw new Error('the entry does not have one error')
  return error
}
