import { ClickHouseError } from '@sluice/clickhouse'
import type { HeldChunk } from '@sluice/queue'
import { compressBlock, compressRows, rowAsJson, readJoined } from '@sluice/rows'
import { encodeBlock, textOfBlocks } from '@sluice/rows/testing'

/** A row with this id, and its newline. `day` is its partition. A block may have a short name as an id. */
export function makeRow(id: string, day = '2026-12-01'): string {
  return `p\t2026-11-22 00:00:00\t${day}\t${id}\t2026-11-22 00:00:00\n`
}

/** A chunk of rows in a block. */
export function makeChunk(id: string, rows: readonly string[] = [makeRow(`${id}-0`)]): HeldChunk {
  const block = encodeBlock(rows)
  return { id, rows: rows.length, bytes: block.length, frame: compressBlock(readJoined(block)) }
}

/** A chunk of version 1, which has rows of text. */
export function makeTextChunk(id: string, rows: readonly string[]): HeldChunk {
  const text = rows.join('')
  return { id, rows: rows.length, bytes: text.length, frame: compressRows(text) }
}

/** The text of the dead letter of a row that was in a block. */
export function letterOf(row: string): string {
  return rowAsJson(textOfBlocks(encodeBlock([row]))) ?? ''
}

/** One error of ClickHouse for each way in which an insert can fail. */
export const insertErrors = {
  transient: new ClickHouseError({ message: 'too many parts', code: '252', type: 'TOO_MANY_PARTS' }),
  too_big: new ClickHouseError({ message: 'memory', code: '241', type: 'MEMORY_LIMIT_EXCEEDED' }),
  poison: new ClickHouseError({ message: 'cannot parse', code: '117', type: 'INCORRECT_DATA' }),
  unknown: new ClickHouseError({ message: 'new', code: '9999', type: 'NEW_CODE' }),
} as const
