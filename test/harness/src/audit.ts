import {
  type ClickHouseAccess,
  type ClickHouseClient,
  connectClickHouse,
  deadLettersTable,
  logsTable,
} from '@sluice/clickhouse'
import type { Journal, SentEntry } from './journal.ts'

/** How often an entry is stored. */
export interface Copies {
  readonly rows: number
  readonly deadLetters: number
}

export interface Finding extends SentEntry, Copies {}

/** The differences between what was acknowledged and what is stored. All lists must be empty. */
export interface Findings {
  /** Acknowledged, but not stored. */
  readonly lost: readonly Finding[]
  /** Stored more than once, whatever its outcome was. */
  readonly doubled: readonly Finding[]
  /** Stored, although the response was that it would not be. */
  readonly storedThoughRejected: readonly Finding[]
  /** The numbers of stored entries that were never sent. */
  readonly foreign: readonly number[]
}

/** How many rows are stored, in total and by the entries' outcomes. */
export interface StoredCounts {
  readonly rows: number
  readonly deadLetters: number
  readonly refusedButStored: number
  readonly unknownButStored: number
}

export interface Audit {
  readonly findings: Findings
  readonly stored: StoredCounts
}

/** Compares every entry of the journal with what ClickHouse has stored. */
export async function audit(access: ClickHouseAccess, journal: Journal): Promise<Audit> {
  return compare(journal, await readStored(access, journal.label))
}

export function compare(journal: Journal, copies: ReadonlyMap<number, Copies>): Audit {
  const entries = journal
    .entries()
    .map((entry): Finding => Object.assign(entry, copies.get(entry.number) ?? { rows: 0, deadLetters: 0 }))
  const present = entries.filter(isStored)
  const sum = (count: (each: Copies) => number): number =>
    [...copies.values()].reduce((total, each) => total + count(each), 0)
  return {
    findings: {
      lost: entries.filter((entry) => entry.outcome === 'acknowledged' && !isStored(entry)),
      doubled: present.filter(({ rows, deadLetters }) => rows + deadLetters > 1),
      storedThoughRejected: present.filter(({ outcome }) => outcome === 'rejected'),
      foreign: [...copies.keys()].filter((number) => journal.entry(number) === undefined),
    },
    stored: {
      rows: sum(({ rows }) => rows),
      deadLetters: sum(({ deadLetters }) => deadLetters),
      refusedButStored: present.filter(({ outcome }) => outcome === 'refused').length,
      unknownButStored: present.filter(({ outcome }) => outcome === 'unknown').length,
    },
  }
}

function isStored({ rows, deadLetters }: Copies): boolean {
  return rows + deadLetters > 0
}

export function isClean({ lost, doubled, storedThoughRejected, foreign }: Findings): boolean {
  return lost.length + doubled.length + storedThoughRejected.length + foreign.length === 0
}

/** Reading all entries of a long run takes a second. */
const QUERY_DEADLINE_MS = 60_000

/** Reads how often each entry with this label is stored, as a row and as a dead letter. */
export async function readStored(access: ClickHouseAccess, label: string): Promise<Map<number, Copies>> {
  const client = connectClickHouse(access, { requestTimeoutMs: QUERY_DEADLINE_MS, connectionsMax: 2 })
  try {
    const rows = await countByNumber(client, label, logsTable, 'message')
    const letters = await countByNumber(client, label, deadLettersTable, "JSONExtractString(text, 'message')")
    const numbers = new Set([...rows.keys(), ...letters.keys()])
    return new Map(
      [...numbers].map((number) => [
        number,
        { rows: rows.get(number) ?? 0, deadLetters: letters.get(number) ?? 0 },
      ]),
    )
  } finally {
    await client.close()
  }
}

async function countByNumber(
  client: ClickHouseClient,
  label: string,
  table: string,
  message: string,
): Promise<Map<number, number>> {
  const result = await client.query({
    // A message whose label is not followed by a number counts as -1, which was never sent.
    query: `
      SELECT ifNull(toInt32OrNull(substring(${message}, length({start: String}) + 1)), -1) AS number,
        toUInt32(count()) AS copies
      FROM ${table} WHERE startsWith(${message}, {start: String}) GROUP BY number`,
    query_params: { start: `${label}-` },
    format: 'JSONEachRow',
  })
  const rows = await result.json<{ number: number; copies: number }>()
  return new Map(rows.map(({ number, copies }) => [number, copies]))
}
