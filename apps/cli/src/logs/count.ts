import { CliError } from '../errors.ts'
import { formatCount, type Listing, printList } from '../terminal.ts'
import { zonedTime } from './entry-lines.ts'
import type { Completeness } from './query-client.ts'
import { DEFAULT_RANGE, reportGaps, type UserQuery } from './user-query.ts'

/** Of the query API. */
const BUCKETS_MAX = 500

interface Bucket {
  readonly from: string
  readonly counts: Readonly<Record<string, number>>
  readonly other?: number
}

interface Histogram extends Completeness {
  readonly step_ms: number
  readonly buckets: readonly Bucket[]
}

/** Prints how many entries match, by the values of a field, and by time if the length of the intervals is given. */
export async function countEntries(query: UserQuery, by: string, perMs: number | undefined): Promise<void> {
  const { text, options, range, zone, client, context, report } = query
  const until = range.until ?? Temporal.Instant.fromEpochMilliseconds(context.nowMs())
  const from = range.from ?? until.subtract(DEFAULT_RANGE)
  const intervalOf = (ms: number): number => Math.floor(ms / (perMs ?? Infinity))
  const buckets = intervalOf(until.epochMilliseconds - 1) - intervalOf(from.epochMilliseconds) + 1
  if (buckets > BUCKETS_MAX)
    throw new CliError(
      `there would be ${formatCount(buckets)} lines, and ${BUCKETS_MAX} are allowed: pass a longer --per`,
    )
  const parameters = { query: text, by, from: String(from), until: String(until), buckets: String(buckets) }
  const answer = await client.get<Histogram>('histogram', parameters)
  const totals: Record<string, number> = {}
  for (const bucket of answer.buckets)
    for (const [value, count] of Object.entries(countsOf(bucket)))
      totals[value] = (totals[value] ?? 0) + count
  const sorted = Object.entries(totals).toSorted((a, b) => b[1] - a[1])
  if (perMs === undefined) await printList(sorted, totalsListing(by), options.json, context)
  else
    await printList(
      answer.buckets,
      bucketsListing(
        sorted.map(([value]) => value),
        zone,
      ),
      options.json,
      context,
    )
  if (perMs !== undefined && perMs !== answer.step_ms)
    await report(`counted per ${answer.step_ms / 1_000} s: an interval divides a minute, an hour or a day`)
  await reportGaps(query, answer)
}

/** Counts of values that are not distinguished have a name too. */
const countsOf = ({ counts, other }: Bucket): Readonly<Record<string, number>> =>
  other === undefined ? counts : { ...counts, '(others)': other }

const nameOf = (value: string): string => (value === '' ? '(none)' : value)

const totalsListing = (by: string): Listing<[string, number]> => ({
  headings: [by.toUpperCase(), 'ENTRIES'],
  cells: ([value, count]) => [nameOf(value), formatCount(count)],
  object: ([value, count]) => ({ value, count }),
  empty: 'no entry matches',
})

const bucketsListing = (values: readonly string[], zone: string): Listing<Bucket> => ({
  headings: ['TIME', ...values.map(nameOf)],
  cells: (bucket) => [
    zonedTime(bucket.from, zone),
    ...values.map((value) => formatCount(countsOf(bucket)[value] ?? 0)),
  ],
  empty: 'no entry matches',
})
