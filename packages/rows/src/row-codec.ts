/**
 * The columns of a row, in order, and the types of their values in blocks. The first three are the same for all rows of a request.
 * Texts are strings also where the table has another type for them: ClickHouse converts them, as it does those of a row.
 */
export const columnTypes = {
  project_id: 'String',
  received_at: "DateTime64(3, 'UTC')",
  expires_on: 'Date',
  id: 'UUID',
  timestamp: "DateTime64(6, 'UTC')",
  level: 'String',
  environment: 'String',
  source: 'String',
  service: 'String',
  url: 'String',
  pathname: 'String',
  message: 'String',
  stack: 'String',
  metadata_text: 'String',
} as const

type ColumnName = keyof typeof columnTypes
export type ColumnType = (typeof columnTypes)[ColumnName]

/** A string of at most 127 bytes, all ASCII, in the format Native: after its length. */
export const nativeString = (text: string): string => String.fromCharCode(text.length) + text

/** The columns of a row, in order. */
export const rowColumns = Object.keys(columnTypes) as readonly ColumnName[]

/** The values that the server adds to each entry of a request. */
export interface RequestStamp {
  readonly projectId: string
  /** Days for which the project keeps its rows. */
  readonly retentionDays: number
  readonly receivedAtMs: number
}

/** What all rows of a request share. */
export interface RowPrefix {
  readonly projectId: string
  /** Entries without a timestamp have this one. */
  readonly receivedAtMs: number
  /** The day of expiry, in days since 1970. */
  readonly expiresOn: number
}

const DAY_MS = 86_400_000

export function makeRowPrefix({ projectId, retentionDays, receivedAtMs }: RequestStamp): RowPrefix {
  // One day more than the retention: a row received at 23:59 is kept for as many full days as one received at 00:00.
  return { projectId, receivedAtMs, expiresOn: Math.floor(receivedAtMs / DAY_MS) + retentionDays + 1 }
}

/** Escapes a string for ClickHouse's TabSeparated format. Almost no string needs it, and three searches cost less than one regular expression. */
export function escapeTsv(text: string): string {
  if (!text.includes('\\') && !text.includes('\t') && !text.includes('\n')) return text
  return text.replace(/[\\\t\n]/g, (character) => escapes[character] ?? character)
}

export function unescapeTsv(text: string): string {
  return text.replace(/\\[\\tn]/g, (escape) => unescapes[escape] ?? escape)
}

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n' }
const unescapes: Readonly<Record<string, string>> = { '\\\\': '\\', '\\t': '\t', '\\n': '\n' }

/** A row as a JSON object with one string per column, for JSONEachRow. Undefined if the string is not a row. */
export function rowAsJson(row: string): string | undefined {
  const fields = row.replace(/\n$/, '').split('\t')
  if (fields.length !== rowColumns.length) return undefined
  return JSON.stringify(Object.fromEntries(rowColumns.map((name, i) => [name, unescapeTsv(fields[i] ?? '')])))
}

/** The first columns, by which a row is looked up in ClickHouse. They never contain an escape: a project id has only `a-z`, `0-9` and `-`. */
export interface RowKey {
  readonly projectId: string
  readonly receivedAt: string
  /** `YYYY-MM-DD` */
  readonly expiresOn: string
  readonly id: string
  /** Any form that `parseTimestamp` returns. ClickHouse stores its first six digits of fraction. */
  readonly timestamp: string
}

/** The columns of a key. */
export const KEY_COLUMNS = 5

/** Reads the key of a row. Columns that are missing are empty strings. */
export function rowKey(row: string): RowKey {
  const fields = row.trimEnd().split('\t', KEY_COLUMNS)
  const [projectId = '', receivedAt = '', expiresOn = '', id = '', timestamp = ''] = fields
  return { projectId, receivedAt, expiresOn, id, timestamp }
}
