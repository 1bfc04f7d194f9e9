import { CliError } from '../errors.ts'
import { formatCount, printList } from '../terminal.ts'
import { zonedTime } from './entry-lines.ts'
import type { Completeness } from './query-client.ts'
import { reportGaps, type UserQuery } from './user-query.ts'

const buckets = { max: 500, usual: 20 } as const

interface Bucket {
  readonly from: string
  readonly counts: Readonly<Record<string, number>>
  /** Of values that are not distinguished. */
  readonly other?: number
}

interface Histogram extends Completeness {
  readonly step_ms: number
  readonly buckets: readonly Bucket[]
}

export interface CountOptions {
  readonly by: string
  readonly per?: number
  readonly json?: true
}

/** Prints how many entries match, by time and the values of a field. */
export async function countEntries(query: UserQuery, { by, per, json }: CountOptions): Promise<void> {
  const { text, from, zone, client, context, report } = query
  const until = query.until ?? Temporal.Instant.fromEpochMilliseconds(context.nowMs())
  const intervalOf = (ms: number): number => Math.floor(ms / (per ?? Infinity))
  const count = intervalOf(until.epochMilliseconds - 1) - intervalOf(from.epochMilliseconds) + 1
  if (count > buckets.max)
    throw new CliError(`--per makes ${formatCount(count)} intervals, and ${buckets.max} are allowed`)
  const range = {
    from: String(from),
    until: String(until),
    buckets: per === undefined ? buckets.usual : count,
  }
  const answer = await client.get<Histogram>('histogram', { query: text, by, ...range })
  const totals: Record<string, number> = {}
  for (const bucket of answer.buckets)
    for (const [value, entries] of Object.entries(countsOf(bucket)))
      totals[value] = (totals[value] ?? 0) + entries
  const values = Object.keys(totals).toSorted((a, b) => (totals[b] ?? 0) - (totals[a] ?? 0))
  const listing = {
    headings: ['TIME', ...values.map((value) => (value === '' ? '(none)' : value))],
    cells: (bucket: Bucket) => [
      bucket.from === '' ? 'total' : zonedTime(bucket.from, zone),
      ...values.map((value) => formatCount(countsOf(bucket)[value] ?? 0)),
    ],
    empty: 'no entry matches',
  }
  await printList(
    json ? answer.buckets : [...answer.buckets, { from: '', counts: totals }],
    listing,
    json,
    context,
  )
  if (per !== undefined && per !== answer.step_ms)
    await report(`counted per ${answer.step_ms / 1_000} s: intervals divide a minute, an hour or a day`)
  await reportGaps(query, answer)
}

const countsOf = ({ counts, other }: Bucket): Readonly<Record<string, number>> =>
  other === undefined ? counts : { ...counts, '(others)': other }
