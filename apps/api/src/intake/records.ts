import type { Owned, RecordOrigin, Rows, ScannedRecords } from '@sluice/row-scanner'
import { type EntryError, limits } from '@sluice/schema'
import { chunkLimits } from '../chunks/chunk-writer.ts'
import { Problem } from '../problems.ts'
import type { Pace } from '../turns.ts'
import type { EntryShaper } from './entry-shaper.ts'
import { RowText } from './row-text.ts'

/**
 * A record of a protocol: as an entry of the contract, which is not validated yet, or the reason why it cannot be one. Or the rows of some
 * records, which are stored together.
 */
export type SourceRecord =
  | { readonly entry: Readonly<Record<string, unknown>> }
  | { readonly error: EntryError }
  | { readonly rows: Rows<Owned> }

/** Makes rows of records of OTLP in a message at once, or leaves them to the decoder: see `RowScanner.scanRecords`. */
export type ScanRecords = (scopeLogs: Buffer, at: number, origin: RecordOrigin) => ScannedRecords

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
 * Makes pieces of rows from records. The boundaries of the pieces follow from the records alone, so a retry has the same ones in the same
 * version.
 *
 * @param records undefined stands for a step of the work that ended without a record
 * @param hold called with the bytes of each piece
 * @throws Problem `too_many_entries`; `body_too_large` if the rows are too large, with those of rejected records
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
  /** Of rows, and of metadata of rejected records: each of 16,384 records may repeat 64 KiB of what they have in common. */
  let bytes = 0

  function addBytes(more: number): void {
    bytes += more
    if (bytes > limits.rowBytesPerRequestMax) throw rowsTooLarge()
  }

  function endPiece(): void {
    const rows = text.take()
    addBytes(rows.byteLength)
    hold(rows.byteLength)
    pieces.push({ rows, start, end: index })
    start = index
    text = new RowText()
  }

  for (const record of records) {
    const pause = pace.pause()
    if (pause !== undefined) await pause
    if (record === undefined) continue
    const count = 'rows' in record ? record.rows.count : 1
    if (index + count > limits.recordsPerRequestMax) throw tooManyRecords()
    if ('rows' in record) text.addRows(record.rows)
    else {
      const shaped = 'error' in record ? { errors: [record.error] } : shaper.shapeValue(record.entry, true)
      if ('row' in shaped) text.add(shaped.row)
      else {
        rejected.set(index, shaped.errors[0] ?? unknownError)
        addBytes(shaped.metadataCharacters ?? 0)
      }
    }
    index += count
    if (text.count >= chunkLimits.rowsMax || text.characters >= chunkLimits.bytesMax) endPiece()
  }
  if (text.count > 0) endPiece()
  return { records: index, rejected, pieces }
}

const unknownError: EntryError = { path: '', code: 'wrong_type', message: 'is invalid' }

function rowsTooLarge(): Problem {
  return new Problem(
    'body_too_large',
    `The rows of the request have more than ${limits.rowBytesPerRequestMax} bytes, with the metadata of rejected records, because each of ` +
      'them repeats what its records have in common. Send fewer records per request.',
  )
}

export function tooManyRecords(): Problem {
  return new Problem(
    'too_many_entries',
    `A request may have at most ${limits.recordsPerRequestMax} records. Send fewer records per request.`,
  )
}
