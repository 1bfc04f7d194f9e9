import { toClickHouseTime } from './timestamps.ts'

/** The columns of a row, in order. The first three are the same for all rows of a request. */
export const rowColumns = [
  'project_id',
  'received_at',
  'expires_on',
  'id',
  'timestamp',
  'level',
  'environment',
  'source',
  'service',
  'url',
  'pathname',
  'message',
  'stack',
  'metadata_text',
] as const

/** The values that the server adds to each entry of a request. */
export interface RequestStamp {
  readonly projectId: string
  /** Days for which the project keeps its rows. */
  readonly retentionDays: number
  readonly receivedAtMs: number
}

/** The part that all rows of a request share. */
export interface RowPrefix {
  /** The first columns, up to the id. */
  readonly text: string
  /** The time of receipt in a form that ClickHouse reads. Entries without a timestamp get it. */
  readonly receivedAt: string
}

const DAY_MS = 86_400_000

export function makeRowPrefix({ projectId, retentionDays, receivedAtMs }: RequestStamp): RowPrefix {
  // One day more than the retention: a row received at 23:59 is kept for as many full days as one received at 00:00.
  const expiresOn = new Date(receivedAtMs + (retentionDays + 1) * DAY_MS).toISOString().slice(0, 10)
  const receivedAt = toClickHouseTime(receivedAtMs)
  return { text: `${escapeTsv(projectId)}\t${receivedAt}\t${expiresOn}\t`, receivedAt }
}

/**
 * Escapes a string for ClickHouse's TabSeparated format. Almost no string needs it, and three searches for a character cost a
 * fraction of one regular expression.
 */
export function escapeTsv(text: string): string {
  if (!text.includes('\\') && !text.includes('\t') && !text.includes('\n')) return text
  return text.replace(/[\\\t\n]/g, (character) => escapes[character] ?? character)
}

function unescapeTsv(text: string): string {
  return text.replace(/\\[\\tn]/g, (escape) => unescapes[escape] ?? escape)
}

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n' }
const unescapes: Readonly<Record<string, string>> = { '\\\\': '\\', '\\t': '\t', '\\n': '\n' }

/**
 * A row in human-readable form: a JSON object with one string per column. ClickHouse accepts it as JSONEachRow.
 *
 * @returns undefined if the string is not a row
 */
export function rowAsJson(row: string): string | undefined {
  const fields = row.replace(/\n$/, '').split('\t')
  if (fields.length !== rowColumns.length) return undefined
  return JSON.stringify(Object.fromEntries(rowColumns.map((name, i) => [name, unescapeTsv(fields[i] ?? '')])))
}

const PROJECT_ID = rowColumns.indexOf('project_id')
const RECEIVED_AT = rowColumns.indexOf('received_at')
const EXPIRES_ON = rowColumns.indexOf('expires_on')
const ID = rowColumns.indexOf('id')
const TIMESTAMP = rowColumns.indexOf('timestamp')

/** The columns by which a row is looked up in ClickHouse. They never contain an escape: a project id has only `a-z`, `0-9` and `-`. */
export interface RowKey {
  readonly projectId: string
  readonly receivedAt: string
  /** `YYYY-MM-DD` */
  readonly expiresOn: string
  readonly id: string
  /** Any form that `parseTimestamp` returns. ClickHouse stores its first six digits of fraction. */
  readonly timestamp: string
}

/** Reads the key of a row. Columns that are missing are empty strings. */
export function rowKey(row: string): RowKey {
  const fields = row.trimEnd().split('\t', TIMESTAMP + 1)
  return {
    projectId: fields[PROJECT_ID] ?? '',
    receivedAt: fields[RECEIVED_AT] ?? '',
    expiresOn: fields[EXPIRES_ON] ?? '',
    id: fields[ID] ?? '',
    timestamp: fields[TIMESTAMP] ?? '',
  }
}
