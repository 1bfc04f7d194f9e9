import { type LogReader, ReadLimitError, type ReadLimit } from '@sluice/clickhouse'
import type { MonotonicClock } from '@sluice/runtime'
import type { Listing, Range } from './cursor.ts'
import { entryJson, type EntryRow, entrySelection } from './entries.ts'
import { ID_ORDER, queryOf, type Selection, timeOfMs } from './selection.ts'
import { type Micros, microsOf } from './times.ts'

const searchLimits = {
  /** The first window. It is read in order, and ClickHouse stops when the page is full, so a busy project does not pay for its length. */
  firstWindowUs: 1_200_000_000n,
  /** A window below it is not divided again: it is too expensive. */
  windowMinUs: 1_000_000n,
  /** Windows grow until a query takes so long: with more, little is saved, and a dense time would exceed the limits. */
  windowMs: 1_000,
  /** A fast query says little about how long others take. */
  growthMax: 100,
  /** Of the entries of a page, as JSON. */
  answerBytesMax: 16 * 1024 * 1024,
} as const

export interface Page {
  readonly rows: readonly EntryRow[]
  /** What is left. Undefined if nothing is. */
  readonly rest: Listing | undefined
  /** What ended the search before the page was full or the list had ended. */
  readonly limitedBy: ReadLimit | undefined
}

export interface SearchOptions {
  readonly reader: Pick<LogReader, 'stream'>
  readonly signal: AbortSignal
  readonly timeMs: number
  readonly clock: Pick<MonotonicClock, 'nowMs'>
}

/**
 * Reads a page of a list of entries, window by window from its beginning: most pages are in the first window, and a query of the whole range
 * would read more. The page ends early at a limit, and the rest begins where the search ended.
 *
 * @throws ReadLimitError if not even the smallest window could be searched, and the errors of `LogReader`
 */
export async function readPage(
  { projectId, condition }: Omit<Selection, 'range'>,
  listing: Listing,
  limit: number,
  { reader, signal, timeMs, clock }: SearchOptions,
): Promise<Page> {
  const endMs = clock.nowMs() + timeMs
  const rows: EntryRow[] = []
  let bytes = 0
  let rest = withinLast(listing)
  let isSearched = false
  let widthUs: Micros = searchLimits.firstWindowUs
  const pageEnd = (limitedBy?: ReadLimit): Page => ({ rows, rest: after(rest, rows.at(-1)), limitedBy })

  // In order, ClickHouse stops when the page is full, and reading an index of words takes longer than the first rows. All rows of a window are
  // read faster without an order.
  while (rest.fromUs < rest.untilUs) {
    const window = firstWindow(rest, widthUs)
    const startedMs = clock.nowMs()
    const query = queryOf(
      { condition, range: window },
      (from) => `SELECT ${entrySelection} ${from}
        AND received_at <= ${timeOfMs('receivedUntil')} ${afterLast(rest)}
        ORDER BY timestamp ${listing.order}, ${ID_ORDER} ${listing.order} LIMIT {limit:UInt32}
        SETTINGS optimize_read_in_order = ${isSearched ? 0 : 1}, use_skip_indexes = ${isSearched ? 1 : 0}`,
      {
        limit: limit + 1 - rows.length,
        receivedUntil: String(listing.receivedUntilMs),
        lastTimestamp: String(rest.last?.timestampUs ?? 0n),
        lastId: rest.last?.id ?? '',
      },
    )
    try {
      const remainingMs = Math.max(1, endMs - startedMs)
      for await (const some of reader.stream<EntryRow>(projectId, query, {
        signal,
        limits: { timeMs: remainingMs },
      }))
        for (const row of some) {
          if (rows.length === limit) return pageEnd()
          rows.push(row)
          bytes += entryJson(row).length
          if (bytes > searchLimits.answerBytesMax) return pageEnd('bytes')
        }
    } catch (error) {
      if (!(error instanceof ReadLimitError)) throw error
      const canDivide = error.limit !== 'time' && window.untilUs - window.fromUs > searchLimits.windowMinUs
      if (canDivide && clock.nowMs() < endMs) {
        // What has arrived is the beginning of the rest, in order.
        rest = withinLast(after(rest, rows.at(-1)))
        widthUs = max((window.untilUs - window.fromUs) / 10n, searchLimits.windowMinUs)
        continue
      }
      if (!isSearched && rows.length === 0) throw error
      return pageEnd(error.limit)
    }
    rest = rest.order === 'desc' ? { ...rest, untilUs: window.fromUs } : { ...rest, fromUs: window.untilUs }
    isSearched = true
    widthUs *= growth(clock.nowMs() - startedMs)
    if (rest.fromUs < rest.untilUs && clock.nowMs() >= endMs) return pageEnd('time')
  }
  return { rows, rest: undefined, limitedBy: undefined }
}

/** How many times as wide the window after one is that took so long. */
function growth(ms: number): bigint {
  const { windowMs, growthMax } = searchLimits
  return BigInt(Math.round(Math.min(Math.max(windowMs / ms, 1), growthMax)))
}

function firstWindow({ order, fromUs, untilUs }: Listing, width: Micros): Range {
  if (untilUs - fromUs <= width) return { fromUs, untilUs }
  return order === 'desc' ? { fromUs: untilUs - width, untilUs } : { fromUs, untilUs: fromUs + width }
}

/** The list without what is before its last entry. Those with the same timestamp are left to `afterLast`. */
function withinLast(listing: Listing): Listing {
  const { order, last, fromUs, untilUs } = listing
  if (last === undefined) return listing
  return order === 'desc'
    ? { ...listing, untilUs: min(untilUs, last.timestampUs + 1n) }
    : { ...listing, fromUs: max(fromUs, last.timestampUs) }
}

function afterLast({ order, last }: Listing): string {
  if (last === undefined) return ''
  return `AND (toUnixTimestamp64Micro(timestamp), ${ID_ORDER}) ${order === 'desc' ? '<' : '>'} ({lastTimestamp:Int64}, toUInt128({lastId:UUID}))`
}

/** The list after a row of its beginning. */
function after(listing: Listing, row: EntryRow | undefined): Listing {
  if (row === undefined) return listing
  const last = { timestampUs: microsOf(row.timestamp), id: row.id }
  const isInRest = listing.fromUs <= last.timestampUs && last.timestampUs < listing.untilUs
  return isInRest ? { ...listing, last } : listing
}

const min = (a: Micros, b: Micros): Micros => (a < b ? a : b)
const max = (a: Micros, b: Micros): Micros => (a > b ? a : b)
