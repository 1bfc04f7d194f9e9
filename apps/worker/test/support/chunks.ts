import { ClickHouseError } from '@sluice/clickhouse'
import type { HeldChunk } from '@sluice/queue'
import { compressRows } from '@sluice/rows'

/** A row with this id, and its newline. `day` is its partition. */
export function makeRow(id: string, day = '2026-12-01'): string {
  return `p\t2026-11-22 00:00:00\t${day}\t${id}\t2026-11-22 00:00:00\n`
}

/** A chunk of rows. */
export function makeChunk(id: string, rows: readonly string[] = [makeRow(`${id}-0`)]): HeldChunk {
  const text = rows.join('')
  return { id, rows: rows.length, bytes: text.length, frame: compressRows(text) }
}

/** One error of ClickHouse for each way in which an insert can fail. */
export const insertErrors = {
  transient: new ClickHouseError({ message: 'too many parts', code: '252', type: 'TOO_MANY_PARTS' }),
  too_big: new ClickHouseError({ message: 'memory', code: '241', type: 'MEMORY_LIMIT_EXCEEDED' }),
  poison: new ClickHouseError({ message: 'cannot parse', code: '117', type: 'INCORRECT_DATA' }),
  unknown: new ClickHouseError({ message: 'new', code: '9999', type: 'NEW_CODE' }),
} as const
