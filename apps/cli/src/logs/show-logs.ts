import type { ClickHouseAccess } from '@sluice/clickhouse'
import { levels } from '@sluice/schema'
import { describeClickHouseError, withClickHouse } from '../clickhouse-session.ts'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { environments } from '../environments.ts'
import { UsageError } from '../errors.ts'
import { requireProject } from '../known-project.ts'
import { readLocalServices } from '../local-services.ts'
import { requireOneOf } from '../one-of.ts'
import { clickhouseAccess, type ClickHouseFlags, type RedisFlags } from '../service-access.ts'
import { painter, printNotice } from '../terminal.ts'
import { jsonLine, stackLines, textLine } from './entry-line.ts'
import { Follower, followUntil } from './follow.ts'
import { type FoundEntry, LogSource } from './log-source.ts'
import { metadataFilterLimits, parseMetadataFilter } from './metadata-filter.ts'
import type { LogFilter, LogRow } from './queries.ts'
import { readTimeRange, type TimeRange, type TimeRangeFlags } from './time-range.ts'

export interface LogsOptions extends ClickHouseFlags, RedisFlags, TimeRangeFlags {
  project?: string
  level?: readonly string[]
  service?: string
  environment?: readonly string[]
  search?: string
  where?: readonly string[]
  limit: number
  follow?: true
  stack?: true
  json?: true
}

/** A larger number of entries of the future is not counted: a sender with a wrong clock may have sent any number. */
export const futureEntriesMax = 10_000

/** `sluice logs`: prints the newest matching entries and, with `follow`, the new entries that arrive. */
export async function showLogs(options: LogsOptions, context: Context): Promise<void> {
  const filter = await readFilter(options, context)
  const range = readTimeRange(options, context.nowMs())
  const access = await clickhouseAccess(options, context)
  const print = printer(options, context)
  const signal = context.abortOnInterrupt()
  const found = await withClickHouse(access, async (client) => {
    const source = new LogSource(client, filter, signal)
    const follower = options.follow ? new Follower(source, print) : undefined
    try {
      await follower?.start()
      const count = await printNewest(source.newest(range, options.limit), print, follower)
      if (!range.isUntilSelected) await reportFutureEntries(source, range, { access, signal }, context)
      if (count === 0 && !(await source.hasEntries())) {
        await requireProject(filter.projectId, { clickhouse: access, flags: options }, context)
      }
      if (follower === undefined) return count
      await followUntil(signal, follower, {
        random: context.random,
        describe: (error) => describeClickHouseError(error, access),
        report: (message) => printNotice(context.stderr, message),
      })
    } catch (error) {
      // Ctrl-C makes whatever is in flight fail, with various errors that do not matter.
      if (!signal.aborted) throw error
    }
    context.exitCode = INTERRUPTED_EXIT_CODE
    return undefined
  })
  if (found === 0 && context.stderr.isTerminal) await context.stderr.write('No matching entries.\n')
}

async function printNewest(
  found: AsyncIterable<readonly FoundEntry[]>,
  print: (rows: readonly LogRow[]) => Promise<void>,
  follower: Follower | undefined,
): Promise<number> {
  let count = 0
  for await (const entries of found) {
    await print(entries)
    for (const entry of entries) follower?.markPrinted(entry)
    count += entries.length
  }
  return count
}

/** Reports how many entries the default of --until hides. */
async function reportFutureEntries(
  source: LogSource,
  range: TimeRange,
  { access, signal }: { access: ClickHouseAccess; signal: AbortSignal },
  { stderr }: Context,
): Promise<void> {
  const option = `(--until ${range.until.replace(' ', 'T').slice(0, -3)}Z)`
  const count = await source.countAfter(range, futureEntriesMax + 1).catch((error: unknown) => {
    const reason = describeClickHouseError(error, access)
    if (reason === undefined || signal.aborted) throw error
    // The current entries are printed already. A large number of future ones must not make the command fail.
    return reason
  })
  if (typeof count === 'string') {
    await printNotice(
      stderr,
      `entries of the future are not shown ${option}; they were not counted: ${count}`,
    )
  } else if (count > 0) {
    const verb = count === 1 ? 'is' : 'are'
    await printNotice(stderr, `${describeCount(count)} of the future ${verb} not shown ${option}`)
  }
}

function describeCount(count: number): string {
  if (count > futureEntriesMax) return `more than ${futureEntriesMax.toLocaleString('en-US')} entries`
  return count === 1 ? '1 entry' : `${count.toLocaleString('en-US')} entries`
}

function printer(
  { json, stack }: LogsOptions,
  { stdout }: Context,
): (rows: readonly LogRow[]) => Promise<void> {
  const paint = painter(stdout.colours)
  const toLines = (row: LogRow): string[] => {
    if (json) return [jsonLine(row)]
    return [textLine(row, paint), ...(stack ? stackLines(row, paint) : [])]
  }
  return (rows) => stdout.write(rows.flatMap((row) => toLines(row).map((line) => `${line}\n`)).join(''))
}

async function readFilter(options: LogsOptions, context: Context): Promise<LogFilter> {
  const { level = [], service, environment = [], search, where = [] } = options
  const wanted = level.map((name) => name.toLowerCase())
  for (const name of wanted) requireOneOf('--level', name, levels)
  for (const name of environment) requireOneOf('--environment', name, environments)
  if (where.length > metadataFilterLimits.filtersMax) {
    throw new UsageError(`--where can be repeated up to ${metadataFilterLimits.filtersMax} times`)
  }
  const metadata = where.map(parseMetadataFilter)
  const projectId = options.project ?? (await readLocalServices(context)).projectId
  if (projectId === undefined)
    throw new UsageError(
      'no project is selected: pass --project, or start the local services with `npm start`',
    )
  return { projectId, levels: wanted, service, environments: environment, search, metadata }
}
