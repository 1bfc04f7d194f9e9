import { environments, levels } from '@sluice/schema'
import type { Command } from 'commander'
import { describeClickHouseError, withClickHouse } from '../clickhouse-session.ts'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { jsonLine, textLines } from '../logs/entry-line.ts'
import { Follower, followUntil } from '../logs/follow.ts'
import { type LogFilter, type LogRow, LogSource, type TimeRange } from '../logs/log-source.ts'
import { parseMetadataFilter } from '../logs/metadata-filter.ts'
import { integer, JSON_OPTION, SLUICE, someOf, withConnections, withExamples } from '../options.ts'
import { clickhouseAccess, type Flags, readLocalServices } from '../service-access.ts'
import { escapeControls, painter } from '../terminal.ts'
import { parseTime, toPreciseTime } from '../times.ts'

/** ClickHouse sorts this many entries in memory, with all their strings. */
const LIMIT_MAX = 100_000

/** Adds the options that select entries of a project: a `LogFilter` and a `TimeRange`. */
export function withLogFilter(command: Command, context: Context, untilDefault = ''): Command {
  const nowMs = context.nowMs()
  const time = (value: string): string => parseTime(value, nowMs)
  return command
    .option('--level <levels>', `only these: ${levels.join(', ')}; comma-separated`, someOf(levels))
    .option('--since, --from <when>', 'from then on: a duration ago (15m, 2h, 3d) or an ISO 8601 time', time)
    .option('--until <when>', `before this time, as for --from; +1h is ahead of now${untilDefault}`, time)
    .option('--service <name>', 'only entries of this service')
    .option('--environment <names>', `only these: ${environments.join(', ')}`, someOf(environments))
    .option('--search <text>', 'only entries with this text in the message; case is ignored')
    .option('--where <condition>', 'with this value in the metadata; repeatable', parseMetadataFilter)
    .addHelpText('after', WHERE_HELP)
}

export function define(command: Command, context: Context): void {
  command.option('--project <id>', 'project that the entries belong to (default: the project of `npm start`)')
  const options = withLogFilter(command, context, ' (default: +1h, which hides entries of the future)')
    .option('--limit <count>', 'maximum number of entries', integer(0, LIMIT_MAX), 100)
    .option('-f, --follow', 'then print new entries as they arrive, whatever their time, until Ctrl-C')
    .option('--stack', 'print the stack traces of entries, too; --json always has them')
    .option(...JSON_OPTION)
  withExamples(
    withConnections(options, 'clickhouse'),
    ['logs --project shop --follow', 'the newest entries, then new ones'],
    ['logs --project shop --level error --since 15m', 'errors of the last 15 minutes'],
    ['logs --project shop --from 2026-11-20T08:00Z --until 2026-11-20T09:00Z', 'one hour'],
    ['logs --project shop --where metadata.user.id=42', 'entries with this metadata'],
    ['logs --project shop --search timeout --limit 1000 --json', 'for a program'],
  ).action((given: LogsOptions) => showLogs(command, given, context))
}

const WHERE_HELP = `
--where compares a value of the metadata:
  metadata.user.id=42       the number 42 (also 42.0 or 4.2e1) or the string "42"
  metadata.ok=true          the boolean true or the string "true"; likewise false
  metadata.reason=null      null or the string "null"; an absent value does not match
  'metadata.user.id="42"'   the string "42" only
  'metadata."a b"=x'        a name with blanks, quotes or operators
Strings are compared with upper and lower case. Objects and arrays do not match. metadata.http.status is the status in
http, or the single name "http.status".`

interface LogsOptions extends Flags, LogFilter, Partial<TimeRange> {
  project?: string
  limit: number
  follow?: true
  stack?: true
  json?: true
}

async function showLogs(command: Command, options: LogsOptions, context: Context): Promise<void> {
  const { json, stack } = options
  const projectId = options.project ?? (await readLocalServices(context)).projectId
  if (projectId === undefined)
    command.error('no project is selected: pass --project, or start the local services with `npm start`')
  const range = readTimeRange(command, options, context.nowMs())
  const access = await clickhouseAccess(options, context)
  const paint = painter(context.stdout.colours)
  const print = async (rows: readonly LogRow[]): Promise<void> => {
    const lines = rows.flatMap((row) => (json ? [jsonLine(row)] : textLines(row, paint, stack === true)))
    await context.stdout.write(lines.map((line) => `${line}\n`).join(''))
  }
  const signal = context.abortOnInterrupt()
  const report = (message: string) => context.stderr.write(`sluice: ${escapeControls(message)}\n`)
  const describe = (error: unknown) => describeClickHouseError(error, access)
  await withClickHouse(access, async (client) => {
    const source = new LogSource(client, projectId, options, signal)
    const follower = options.follow ? new Follower(source, print) : undefined
    try {
      await follower?.start()
      let count = 0
      for await (const entries of source.newest(range, options.limit)) {
        await print(entries)
        for (const entry of entries) follower?.markPrinted(entry)
        count += entries.length
      }
      if (options.until === undefined) {
        const hidden = await source.hasAfter(range).catch((error: unknown) => {
          // The current entries are printed already. A search through many future ones must not make the command fail.
          if (signal.aborted || describe(error) === undefined) throw error
          return `not searched, ${describe(error)}`
        })
        const until = `(--until ${range.until.replace(' ', 'T').slice(0, -3)}Z)`
        const detail = hidden === true ? '' : `: ${hidden}`
        if (hidden !== false) await report(`entries of the future are not shown ${until}${detail}`)
      }
      // The id is probably misspelt. Redis has the projects, but the rows of a deleted one can still be read.
      if (count === 0 && !(await source.hasEntries()))
        await report(
          `the project ${projectId} has no entries; \`${SLUICE} projects list\` lists the projects`,
        )
      else if (count === 0 && context.stderr.isTerminal) await report('no entry matches')
      if (follower === undefined) return
      await followUntil(signal, follower, { random: context.random, describe, report })
    } catch (error) {
      // Ctrl-C makes whatever is in flight fail, with various errors that do not matter.
      if (!signal.aborted) throw error
    }
    context.exitCode = INTERRUPTED_EXIT_CODE
  })
}

/** Clocks of senders may be ahead by some minutes. Timestamps further ahead, of a wrong clock or an attacker, would hide current entries. */
const FUTURE_ALLOWED_MS = 3_600_000

function readTimeRange(command: Command, { from, until }: LogsOptions, nowMs: number): TimeRange {
  const range = { from, until: until ?? toPreciseTime(nowMs + FUTURE_ALLOWED_MS) }
  if (from === undefined || from < range.until) return range
  return command.error(
    until === undefined
      ? '--from is after the default of --until, one hour from now; pass --until too'
      : '--from must be before --until',
  )
}
