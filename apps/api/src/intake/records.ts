import { type Owned, ownedRows, type Rows } from '@sluice/row-scanner'
import { type EntryError, limits } from '@sluice/schema'
import { chunkLimits } from '../chunks/chunk-writer.ts'
import { Problem } from '../problems.ts'
import type { Pace } from '../turns.ts'
import type { EntryShaper } from './entry-shaper.ts'
import { RowText } from './row-text.ts'

/** A record of a protocol: as an entry of the contract, which is not validated yet, or the reason why it cannot be one. */
export type SourceRecord =
  | { readonly entry: Readonly<Record<string, unknown>> }
  | { readonly error: EntryError }

/** Rows that are stored together. */
export interface Piece {
  readonly rows: Rows<Owned>
  /** The records that the rows were made of: from this index … */
  readonly start: number
  /** … to the one before this index. */
  readonly end: number
}

/** What came of the records of a request. */
export interface Outcome {
  /** The number of records, valid or not. */
  readonly records: number
  /** The first error of each rejected record, by the index of the record. */
  readonly rejected: ReadonlyMap<number, EntryError>
}

export interface ReadRecords extends Outcome {
  readonly pieces: readonly Piece[]
}

/**
 * Makes pieces of rows from records. The boundaries of the pieces follow from the records alone, so a retry has the same ones.
 *
 * @param records undefined stands for a step of the work that ended without a record
 * @param hold called with the bytes of each piece
 * @throws Problem `too_many_entries`; `body_too_large` if the rows are too large
 */
export async function readRecords(
  records: Iterable<SourceRecord | undefined>,
  shaper: EntryShaper,
  pace: Pace,
  hold: (bytes: number) => void,
): Promise<ReadRecords> {
  const pieces: Piece[] = []
  const rejected = new Map<number, EntryError>()
  let text = new RowText()
  let index = 0
  let start = 0
  let bytes = 0

  function endPiece(): void {
    const rows = ownedRows(text.count, text.take())
    bytes += rows.byteLength
    if (bytes > limits.rowBytesPerRequestMax) throw rowsTooLarge()
    hold(rows.byteLength)
    pieces.push({ rows, start, end: index })
    start = index
    text = new RowText()
  }

  for (const record of records) {
    const pause = pace.pause()
    if (pause !== undefined) await pause
    if (record === undefined) continue
    if (index === limits.recordsPerRequestMax) throw tooManyRecords()
    const shaped = 'error' in record ? { errors: [record.error] } : shaper.shapeValue(record.entry, true)
    if ('row' in shaped) text.add(shaped.row)
    else rejected.set(index, shaped.errors[0] ?? unknownError)
    index += 1
    if (text.count >= chunkLimits.rowsMax || text.characters >= chunkLimits.bytesMax) endPiece()
  }
  if (text.count > 0) endPiece()
  return { records: index, rejected, pieces }
}

const unknownError: EntryError = { path: '', code: 'wrong_type', message: 'is invalid' }

function rowsTooLarge(): Problem {
  return new Problem(
    'body_too_large',
    `The rows of the request have more than ${limits.rowBytesPerRequestMax} bytes, because each of them repeats what its records have in ` +
      'common. Send fewer records per request.',
  )
}

export function tooManyRecords(): Problem {
  return new Problem(
    'too_many_entries',
    `A request may have at most ${limits.recordsPerRequestMax} records. Send fewer records per request.`,
  )
}
