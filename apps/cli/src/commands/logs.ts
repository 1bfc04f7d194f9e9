import { highlights, parseQuery } from '@sluice/query-language'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { parseTimeZone } from '../lines/times.ts'
import { jsonLine, lineLimits, textLines, zonedTime } from '../logs/entry-lines.ts'
import type { Completeness, Entry } from '../logs/query-client.ts'
import { type QueryOptions, reportGaps, type UserQuery, withQuery } from '../logs/user-query.ts'
import { integer, JSON_OPTION, withConnections, withExamples } from '../options.ts'
import { escapeControls, formatCount, painter, printList } from '../terminal.ts'
import { parseDuration } from '../times.ts'

const limits = {
  /** They are sorted here, with all their strings. */
  entriesMax: 100_000,
  /** Of one request. */
  pageMax: 1_000,
  /** Pages that end at a limit of the search, after about ten seconds each. Nobody waits longer without a word. */
  limitedPagesMax: 6,
  intervalsMax: 500,
  /** Of a count without `--per`. */
  intervals: 20,
} as const

export function define(command: Command, context: Context): void {
  command
    .argument('[query...]', 'which entries, in the query language (default: all)')
    .option('--since, --from <when>', 'from then on: 15m (ago), 10:30, yesterday, 2026-11-24 (default: 15m)')
    .option('--until <when>', 'before this time, as for --from (default: now)')
    .option('--timezone <zone>', 'zone of times (default: of this machine)', parseTimeZone)
    .option('--limit <count>', 'maximum number of entries', integer(0, limits.entriesMax), 100)
    .option('-f, --follow', 'then print new entries as they arrive, whatever their time, until Ctrl-C')
    .option('--id <id>', 'the entry with this id')
    .option('--context <count>', 'with --id: entries before and after', integer(0, limits.pageMax))
    .option('--fields <names>', 'only these: timestamp,service,user.id', (names) => names.split(','))
    .option('--full', 'do not shorten long messages on terminals')
    .option('--stack', 'print stack traces to their end')
    .option(...JSON_OPTION)
    .addHelpText('after', QUERY_HELP)
  withExamples(
    withConnections(command, 'query'),
    ['logs --follow', 'the newest entries, then new ones'],
    ['logs level:error service:api-* --from 1h', 'errors of the last hour'],
    ['logs --from yesterday --limit 1000 --json', 'for a program'],
    ['logs --id 01a208ac-c196-7000-b17f-dd01c9e178b2 --context 10', 'an entry, and those around it'],
    ['logs count level:error --by service --per 1m', 'how many, by minute and service'],
  ).action((words: string[], given: LogsOptions) =>
    withQuery(command, words, given, context, (query) => showLogs(command, query, given)),
  )
  command
    .command('count')
    .description('count entries by the values of a field, and by time')
    .argument('[query...]', 'which entries, as for logs')
    .option('--by <field>', 'a column, or a path in the metadata', 'level')
    .option('--per <time>', 'a line for each interval of this length: 30s, 1m, 1h', parseDuration)
    .action((words: string[], given: CountOptions) => {
      const options = { ...command.opts<QueryOptions>(), ...given }
      return withQuery(command, words, options, context, (query) => countEntries(query, options))
    })
}

const QUERY_HELP = `
The query language:
  timeout  "connection refused"       the message contains it, in any case
  level:error  level:(error OR warn)  a field equals a value
  service:api-*  trace_id:*           begins with; has the field
  user.id:42  http.status:>=500       a path in the metadata; 400..499 is a range
  a b   a OR b   NOT a   ( )          both, one of them, not, groups
Quote the query for the shell. To search for the word count, write message:count.`

interface LogsOptions extends QueryOptions {
  readonly limit: number
  readonly follow?: true
  readonly id?: string
  readonly context?: number
  readonly fields?: readonly string[]
  readonly full?: true
  readonly stack?: true
}

interface ContextAnswer extends Completeness {
  readonly before: readonly Entry[]
  readonly entry: Entry
  readonly after: readonly Entry[]
}

interface LogsAnswer extends Completeness {
  readonly entries: readonly Entry[]
  readonly next: string | null
}

async function showLogs(command: Command, query: UserQuery, options: LogsOptions): Promise<void> {
  const { text, client, context, report } = query
  const { json, follow, id, limit, context: around = 0 } = options
  if (follow && (options.until ?? id) !== undefined)
    command.error('--follow goes on until Ctrl-C, and has no --until and no --id')
  if (options.context !== undefined && id === undefined) command.error('--context needs --id')
  const linesOf = lineFormat(query, options)
  const print = async (lines: readonly string[]): Promise<void> => {
    const output = lines.map((line) => `${line}\n`).join('')
    const isPaged = !json && !follow && context.page(output)
    if (!isPaged) await context.stdout.write(output)
  }
  if (id !== undefined) {
    const parameters = { query: text, id, before: around, after_count: around }
    const answer = await client.get<ContextAnswer>('context', parameters)
    const [first = '', ...rest] = linesOf(answer.entry)
    const one = [json || around === 0 ? first : `→ ${first}`, ...rest]
    await print([...answer.before.flatMap(linesOf), ...one, ...answer.after.flatMap(linesOf)])
    return reportGaps(query, answer)
  }
  const printed = new Set<string>()
  let from: string | undefined
  if (limit > 0) {
    const answer = await readNewest(query, limit)
    await print(answer.entries.toReversed().flatMap(linesOf))
    await reportRange(query, options, answer)
    await reportGaps(query, answer)
    from = answer.complete_until ?? undefined
    // The tail begins there, and has these as well.
    for (const { id: each, received_at: receivedAt } of answer.entries)
      if (receivedAt > (from ?? '')) printed.add(each)
  }
  if (!follow) return
  for await (const entries of client.follow({ query: text, from }, context, report))
    await print(entries.filter((entry) => !printed.delete(entry.id)).flatMap(linesOf))
}

function lineFormat({ text, zone, context }: UserQuery, options: LogsOptions): (entry: Entry) => string[] {
  const { json, fields, full, stack } = options
  const { isTerminal, colours } = context.stdout
  const parsed = parseQuery(text)
  const found = 'query' in parsed ? highlights(parsed.query) : []
  const style = {
    paint: painter(colours),
    zone,
    fields,
    highlights: found.map(escapeControls),
    charactersMax: isTerminal && !full ? lineLimits.charactersShown : Infinity,
    stackLinesMax: stack ? Infinity : isTerminal ? lineLimits.stackLinesShown : 0,
  }
  return (entry) => (json ? [jsonLine(entry, fields)] : textLines(entry, style))
}

/** The newest entries, newest first, from as many pages as they need. */
async function readNewest(
  { client, text: query, from, until }: UserQuery,
  limit: number,
): Promise<LogsAnswer> {
  const range = { from: String(from), until: until && String(until) }
  const entries: Entry[] = []
  let first: LogsAnswer | undefined
  let next: string | null = null
  for (let limitedPages = 0; ;) {
    const pageLimit = Math.min(limit - entries.length, limits.pageMax)
    const parameters = { query, ...range, limit: pageLimit, cursor: next ?? undefined }
    const page: LogsAnswer = await client.get<LogsAnswer>('logs', parameters)
    first ??= page
    entries.push(...page.entries)
    next = page.next
    if (page.limited_by !== undefined && page.limited_by !== 'bytes') limitedPages += 1
    const isDone = next === null || entries.length === limit
    if (isDone || limitedPages === limits.limitedPagesMax)
      // All pages have what was received until the first one.
      return { ...first, entries, next, limited_by: isDone ? undefined : page.limited_by }
  }
}

/** Says what is not shown, and how to see more. */
async function reportRange(
  { from, until, zone, report, context }: UserQuery,
  given: LogsOptions,
  { entries, next, limited_by: limit }: LogsAnswer,
): Promise<void> {
  const isDefault = (given.from ?? given.until) === undefined
  const end = until === undefined ? 'now' : zonedTime(until.toString(), zone)
  const where = isDefault ? 'of the last 15 minutes' : `from ${zonedTime(from.toString(), zone)} until ${end}`
  if (limit !== undefined) return
  if (entries.length === 0) await report(`no entry ${where} matches; --from 1d shows those of a day`)
  else if (next !== null)
    await report(`only the newest ${entries.length} of the entries ${where}; --limit shows more`)
  else if (isDefault && context.stderr.isTerminal)
    await report(`the entries ${where}; --from 1d shows those of a day`)
}

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

interface CountOptions {
  readonly by: string
  readonly per?: number
  readonly json?: true
}

/** Prints how many entries match, by time and the values of a field. */
async function countEntries(query: UserQuery, { by, per, json }: CountOptions): Promise<void> {
  const { text, from, zone, client, context, report } = query
  const until = query.until ?? Temporal.Instant.fromEpochMilliseconds(context.nowMs())
  const intervalOf = (ms: number): number => Math.floor(ms / (per ?? Infinity))
  const count = intervalOf(until.epochMilliseconds - 1) - intervalOf(from.epochMilliseconds) + 1
  if (count > limits.intervalsMax)
    throw new CliError(`--per makes ${formatCount(count)} intervals, and ${limits.intervalsMax} are allowed`)
  const range = {
    from: String(from),
    until: String(until),
    buckets: per === undefined ? limits.intervals : count,
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
