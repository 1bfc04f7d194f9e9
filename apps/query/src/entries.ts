/** The columns of an entry, in the order in which users see them. */
export const entryColumns = [
  'id',
  'timestamp',
  'received_at',
  'level',
  'service',
  'environment',
  'source',
  'message',
  'url',
  'pathname',
  'stack',
] as const

type EntryColumn = (typeof entryColumns)[number]

/** An entry as ClickHouse returns it. Times are ISO 8601. Absent strings are empty. */
export type EntryRow = Readonly<Record<EntryColumn | 'metadata_text', string>>

/** What a query reads of an entry. */
export const entrySelection = [...entryColumns, 'metadata_text'].join(', ')

const NO_METADATA = '{}'

/**
 * An entry as JSON, on one line. The metadata is copied as it was sent, and never parsed: its integers may have any size.
 */
export function entryJson(row: EntryRow): string {
  const present = entryColumns.filter((name) => row[name] !== '' || name === 'message')
  const json = JSON.stringify(row, present as unknown as string[])
  return row.metadata_text === NO_METADATA ? json : `${json.slice(0, -1)},"metadata":${row.metadata_text}}`
}

export const csvHead = `${[...entryColumns, 'metadata'].join(',')}\r\n`

/** An entry as a line of CSV (RFC 4180). Values are not changed, also those that a spreadsheet would take for formulas. */
export function entryCsv(row: EntryRow): string {
  const values = [...entryColumns.map((name) => row[name]), row.metadata_text]
  return `${values.map((value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value)).join(',')}\r\n`
}
