import type { LogReader, ReadOptions } from '@sluice/clickhouse'
import { idTimeMs } from '@sluice/rows'
import type { MonotonicClock } from '@sluice/runtime'
import { type EntryRow, entrySelection } from './entries.ts'
import { Problem } from './problems.ts'
import { timeOfMs } from './selection.ts'

/**
 * Up to when everything can be seen: no entry with `received_at` at or before this time, in ms since 1970, becomes visible later. Null if that
 * is not known. It must be asked before the query that it is about.
 */
export interface CompletePoint {
  readonly until: () => Promise<number | null>
}

const visibilityLimits = {
  /** How long an answer waits for an entry. A client should not wait longer for one request. */
  waitMs: 10_000,
  /** Rows become visible with each insert: twice a second or less. */
  pollMs: 100,
  /**
   * How much earlier than its id an entry may be received: its body may take 30 s to arrive, and it waits for a turn. Later: ids are made
   * after the receipt, but may run ahead of the clock.
   */
  receivedBeforeMs: 120_000,
  receivedAfterMs: 60_000,
} as const

/** A retry of a dead letter may be received at any time after its id was made. To look for it reads the ids of all entries since then. */
export const receivedLate = Date.UTC(2262, 0)

/** The entry of a project with an id that the API made. */
export async function findEntry(
  reader: LogReader,
  projectId: string,
  id: string,
  options: ReadOptions,
  receivedUntilMs = idTimeMs(id) + visibilityLimits.receivedAfterMs,
): Promise<EntryRow | undefined> {
  const [row] = await reader.rows<EntryRow>(
    projectId,
    {
      // By the time of receipt, which has an index: the timestamp may be any.
      sql: (from) => `SELECT ${entrySelection} ${from} AND id = {id:UUID}
        AND received_at >= ${timeOfMs('receivedFrom')} AND received_at <= ${timeOfMs('receivedUntil')} LIMIT 1`,
      parameters: {
        id,
        receivedFrom: String(Math.max(0, idTimeMs(id) - visibilityLimits.receivedBeforeMs)),
        receivedUntil: String(receivedUntilMs),
      },
    },
    options,
  )
  return row
}

/**
 * Waits until an entry, and everything that was accepted before it, can be seen.
 *
 * @returns when it was received, in ms since 1970
 * @throws Problem `not_visible_yet`
 */
export async function waitUntilVisible(
  reader: LogReader,
  completePoint: CompletePoint,
  clock: MonotonicClock,
  { projectId, id }: { readonly projectId: string; readonly id: string },
  options: ReadOptions,
): Promise<number> {
  const endMs = clock.nowMs() + visibilityLimits.waitMs
  for (;;) {
    const completeMs = await completePoint.until()
    if (completeMs !== null && completeMs >= idTimeMs(id)) {
      const row = await findEntry(reader, projectId, id, options)
      const receivedMs = row === undefined ? undefined : Date.parse(row.received_at)
      if (receivedMs !== undefined && completeMs >= receivedMs) return receivedMs
    }
    if (clock.nowMs() >= endMs) throw new Problem('not_visible_yet')
    await clock.sleep(visibilityLimits.pollMs, options.signal)
    options.signal.throwIfAborted()
  }
}
