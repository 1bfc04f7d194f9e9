import { highlights, parseQuery } from '@sluice/query-language'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { parseTimeZone } from '../lines/times.ts'
import { countEntries } from '../logs/count.ts'
import { jsonLine, lineLimits, textLines, zonedTime } from '../logs/entry-lines.ts'
import type { Completeness, Entry } from '../logs/query-client.ts'
import { acceptReplaced } from '../logs/replaced-options.ts'
import { type LogsOptions, reportGaps, type UserQuery, withQuery } from '../logs/user-query.ts'
import { integer, JSON_OPTION, withConnections, withExamples } from '../options.ts'
import { escapeControls, formatCount, painter } from '../terminal.ts'
import { parseDuration } from '../times.ts'

const limits = {
  /** They are sorted here, with all their strings. */
  entriesMax: 100_000,
  /** Of one request. */
  pageMax: 1_000,
  /** Pages that end at a limit of the search, after about ten seconds each. Nobody waits longer without a word. */
  limitedPagesMax: 6,
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
  acceptReplaced(command)
  withExamples(
    withConnections(command, 'query'),
    ['logs --follow', 'the newest entries, then new ones'],
    ['logs level:error service:api-* --from 1h', 'errors of the last hour'],
    ['logs --from yesterday --limit 1000 --json', 'for a program'],
    ['logs --id 01a208ac-c196-7000-b17f-dd01c9e178b2 --context 10', 'an entry, and those around it'],
    ['logs count level:error --by service --per 1m', 'how many, by minute and service'],
  ).action((words: string[], given: LogsOptions) =>
    withQuery(command, words, given, context, (query) => showLogs(command, query)),
  )
  command
    .command('count')
    .description('count entries by the values of a field, and by time')
    .argument('[query...]', 'which entries, as for logs')
    .option('--by <field>', 'a column, or a path in the metadata', 'level')
    .option('--per <time>', 'a line for each interval of this length: 30s, 1m, 1h', parseDuration)
    .action((words: string[], { by, per }: { by: string; per?: number }) =>
      withQuery(command, words, command.opts(), context, (query) => countEntries(query, by, per)),
    )
}

const QUERY_HELP = `
The query language:
  timeout  "connection refused"       the message contains it, in any case
  level:error  level:(error OR warn)  a field equals a value
  service:api-*  trace_id:*           begins with; has the field
  user.id:42  http.status:>=500       a path in the metadata; 400..499 is a range
  a b   a OR b   NOT a   ( )          both, one of them, not, groups
Quote the query for the shell. To search for the word count, write message:count.`

async function showLogs(command: Command, query: UserQuery): Promise<void> {
  const { text, options, client, context, report } = query
  if (options.follow && (options.until ?? options.id) !== undefined)
    command.error('--follow goes on until Ctrl-C, and has no --until and no --id')
  const linesOf = formatOf(query)
  const print = async (lines: readonly string[]): Promise<void> => {
    const output = lines.map((line) => `${line}\n`).join('')
    const isPaged = !options.json && !options.follow && context.page(output)
    if (!isPaged) await context.stdout.write(output)
  }
  if (options.id !== undefined) {
    const count = options.context ?? 0
    const around = { before: String(count), after_count: String(count) }
    const answer = await client.get<ContextAnswer>('context', { query: text, id: options.id, ...around })
    const [first = '', ...rest] = linesOf(answer.entry)
    const one = [options.json || count === 0 ? first : `→ ${first}`, ...rest]
    await print([...answer.before.flatMap(linesOf), ...one, ...answer.after.flatMap(linesOf)])
    return reportGaps(query, answer)
  }
  let from: string | undefined
  const printed = new Set<string>()
  if (options.limit > 0) {
    const answer = await readNewest(query)
    await print(answer.entries.toReversed().flatMap(linesOf))
    await reportGaps(query, answer)
    await reportRange(query, answer)
    from = answer.complete_until ?? undefined
    // The tail begins there, and has these as well.
    for (const { id, received_at: receivedAt } of answer.entries)
      if (receivedAt > (from ?? '')) printed.add(id)
  }
  if (!options.follow) return
  for await (const arrived of client.follow({ query: text, from }, { random: context.random, report }))
    await print(arrived.filter(({ id }) => !printed.delete(id)).flatMap(linesOf))
}

/** How an entry is printed. */
function formatOf({ text, options, zone, context: { stdout } }: UserQuery): (entry: Entry) => string[] {
  const { json, fields, full, stack } = options
  const parsed = parseQuery(text)
  const found = 'query' in parsed ? highlights(parsed.query) : []
  const patterns = found.map((each) => RegExp.escape(escapeControls(each)))
  const style = {
    zone,
    fields,
    paint: painter(stdout.colours),
    highlights: patterns.length === 0 ? undefined : new RegExp(patterns.join('|'), 'giu'),
    charactersMax: stdout.isTerminal && !full ? lineLimits.charactersShown : Infinity,
    stackLinesMax: stack ? Infinity : stdout.isTerminal ? lineLimits.stackLinesShown : 0,
  }
  return (entry) => (json ? [jsonLine(entry, fields)] : textLines(entry, style))
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

/** The newest entries, newest first, from as many pages as they need. */
async function readNewest({ client, text, range, options: { limit } }: UserQuery): Promise<LogsAnswer> {
  const parameters = { query: text, from: range.from?.toString(), until: range.until?.toString() }
  const entries: Entry[] = []
  let first: LogsAnswer | undefined
  let cursor: string | undefined
  for (let limitedPages = 0; ;) {
    const pageLimit = Math.min(limit - entries.length, limits.pageMax)
    const page = await client.get<LogsAnswer>('logs', { ...parameters, limit: String(pageLimit), cursor })
    entries.push(...page.entries)
    first ??= page
    cursor = page.next ?? undefined
    if (page.limited_by !== undefined && page.limited_by !== 'bytes') limitedPages += 1
    const isFull = cursor === undefined || entries.length === limit
    if (!isFull && limitedPages < limits.limitedPagesMax) continue
    const limited = isFull ? undefined : page.limited_by
    // The later pages have nothing that was received after the first one.
    return {
      entries,
      next: page.next,
      complete_until: first.complete_until,
      ...(limited && { limited_by: limited }),
    }
  }
}

/** Says what is not shown, and how to see more. */
async function reportRange(
  query: UserQuery,
  { entries, next, limited_by: limit }: LogsAnswer,
): Promise<void> {
  const { range, zone, report, context } = query
  const [from, until = 'now'] = [range.from, range.until].map((end) => end && zonedTime(String(end), zone))
  const where = from === undefined ? 'in the last 15 minutes' : `from ${from} until ${until}`
  const count = entries.length
  if (limit !== undefined) return
  if (count === 0)
    await report(`no entry matches ${where}; --from ${from === undefined ? '1d' : '7d'} searches more`)
  else if (next !== null)
    await report(
      `these are the newest ${formatCount(count)} entries ${where}; --limit ${count * 10} shows more`,
    )
  else if (from === undefined && context.stderr.isTerminal)
    await report(`these are all entries ${where}; --from 1d shows more`)
}
