import {
  EntryValidator,
  makeRowPrefix,
  parseJsonExactly,
  type RequestStamp,
  type RowPrefix,
  shapeRow,
} from '@sluice/rows'
import { limits } from '@sluice/schema'
import { type Rows, RowScanner } from '../../src/index.ts'

const ID = '01a1fb4d-5bd1-74f9-83e0-56d2211cd84d'
export const stamp: RequestStamp = {
  projectId: 'demo',
  retentionDays: 30,
  receivedAtMs: Date.UTC(2026, 10, 20),
}
const prefix = makeRowPrefix(stamp)
const validator = new EntryValidator()

/** A scanner that gives every row the same id. */
export function makeScanner(): RowScanner {
  return new RowScanner({ write: (memory, at) => memory.set(Buffer.from(ID), at) })
}

function textOf<Scope>(rows: Rows<Scope>): string {
  const text = Buffer.alloc(rows.byteLength)
  rows.copyTo(text, 0)
  return text.toString()
}

/** The rows that the scanner makes of a body. Undefined if it leaves the body to the parser. */
export function scanText(
  scanner: RowScanner,
  body: string | Buffer,
  rowPrefix: RowPrefix,
  isNdjson = false,
): string | undefined {
  return scanner.scan(Buffer.from(body as string), rowPrefix, isNdjson, ({ rows }) => ({
    text: textOf(rows),
  }))?.text
}

/** What the scanner makes of a body, for comparison with `parse`. */
export function scan(scanner: RowScanner, body: string | Buffer, isNdjson = false): unknown {
  return scanner.scan(Buffer.from(body as string), prefix, isNdjson, ({ rows, single }) => ({
    count: rows.count,
    text: textOf(rows),
    single,
  }))
}

/**
 * What the parser, the validator and `shapeRow` make of a body: the definition of what is correct.
 *
 * @returns undefined if any entry is invalid, or the body as a whole
 */
export function parse(body: string | Buffer, isNdjson = false): unknown {
  try {
    const { entries, isSingle } = entriesOf(Buffer.from(body as string).toString(), isNdjson)
    if (entries.length > limits.entriesPerRequestMax) return undefined
    const rows = entries.map(rowOf)
    if (rows.includes(undefined)) return undefined
    const { timestamp } = (entries[0] ?? {}) as { timestamp?: string | null }
    const single = isSingle ? { id: ID, timestamp: timestamp ?? undefined } : undefined
    return { count: rows.length, text: rows.join(''), single }
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function entriesOf(text: string, isNdjson: boolean): { entries: readonly unknown[]; isSingle: boolean } {
  if (isNdjson) {
    const lines = text.split('\n').filter((line) => !/^[ \t\r]*$/.test(line))
    return { entries: lines.map(parseJsonExactly), isSingle: false }
  }
  const value = parseJsonExactly(text)
  if (Array.isArray(value)) return { entries: value, isSingle: false }
  const { logs } = (value ?? {}) as { logs?: unknown }
  return Array.isArray(logs) ? { entries: logs, isSingle: false } : { entries: [value], isSingle: true }
}

function rowOf(value: unknown): string | undefined {
  if (!validator.isEntry(value)) return undefined
  const shaped = shapeRow(value, ID, prefix, true)
  return 'row' in shaped ? shaped.row : undefined
}
