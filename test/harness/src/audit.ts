import { type ClickHouseAccess, deadLettersTable, logsTable } from '@sluice/clickhouse'
import { select } from './clickhouse.ts'
import type { Journal, SentEntry } from './journal.ts'

export interface Copies {
  readonly rows: number
  readonly deadLetters: number
}

export interface Finding extends SentEntry, Copies {}

/** The differences between what was acknowledged and what is stored. All lists must be empty. */
export interface Findings {
  readonly lost: readonly Finding[]
  /** Stored more than once, whatever its outcome was. */
  readonly doubled: readonly Finding[]
  /** Stored, although the response was that it would not be. */
  readonly storedThoughRejected: readonly Finding[]
  /** The numbers of stored entries that were never sent. */
  readonly foreign: readonly number[]
}

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
      foreign: [...copies.keys()].filter((number) => number < 0 || number >= journal.size),
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

/** Reads how often each entry with this label is stored, as a row and as a dead letter. */
export async function readStored(access: ClickHouseAccess, label: string): Promise<Map<number, Copies>> {
  // A message whose label is not followed by a number counts as -1, which was never sent.
  const query = `
    SELECT ifNull(toInt32OrNull(substring(message, length({start: String}) + 1)), -1) AS number,
      toUInt32(countIf(isRow)) AS rows, toUInt32(countIf(NOT isRow)) AS deadLetters
    FROM (
      SELECT message, true AS isRow FROM ${logsTable}
      UNION ALL SELECT JSONExtractString(text, 'message') AS message, false AS isRow FROM ${deadLettersTable}
    ) WHERE startsWith(message, {start: String}) GROUP BY number`
  const counts = await select<Copies & { number: number }>(access, query, { start: `${label}-` })
  return new Map(counts.map(({ number, ...copies }) => [number, copies]))
}
