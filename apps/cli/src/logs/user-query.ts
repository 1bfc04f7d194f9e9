import { type Command, InvalidArgumentError } from 'commander'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { type Flags, httpAccess } from '../service-access.ts'
import { escapeControls } from '../terminal.ts'
import { parseTime } from '../times.ts'
import { zonedTime } from './entry-lines.ts'
import { type Completeness, QueryClient, QueryProblem } from './query-client.ts'
import { rejectReplaced, type ReplacedOptions } from './replaced-options.ts'

export interface LogsOptions extends Flags, ReplacedOptions {
  readonly from?: string
  readonly until?: string
  readonly timezone?: string
  readonly limit: number
  readonly follow?: true
  readonly id?: string
  readonly context?: number
  readonly fields?: readonly string[]
  readonly full?: true
  readonly stack?: true
  readonly json?: true
}

/** Absent ends are those of the query API: the last 15 minutes. */
interface TimeRange {
  readonly from: Temporal.Instant | undefined
  readonly until: Temporal.Instant | undefined
}

export const DEFAULT_RANGE = { minutes: 15 } as const

/** Entries can usually be read a second after they are accepted. */
const COMPLETE_LAG_MS = 10_000

/** A query that a user has written, and what is needed to answer it. */
export interface UserQuery {
  readonly text: string
  readonly options: LogsOptions
  readonly range: TimeRange
  readonly zone: string
  readonly client: QueryClient
  readonly context: Context
  readonly report: (message: string) => Promise<void>
}

/** Runs a query until it is answered or interrupted, and shows the errors in its text. */
export async function withQuery(
  command: Command,
  words: readonly string[],
  options: LogsOptions,
  context: Context,
  act: (query: UserQuery) => Promise<void>,
): Promise<void> {
  const text = words.join(' ')
  rejectReplaced(command, options, text)
  const zone = options.timezone ?? Temporal.Now.timeZoneId()
  const range = readRange(command, options, context.nowMs(), zone)
  const access = await httpAccess('query', options, context)
  const signal = context.abortOnInterrupt()
  const client = new QueryClient(access, signal)
  const report = (message: string) => context.stderr.write(`sluice: ${escapeControls(message)}\n`)
  try {
    await act({ text, options, range, zone, client, context, report })
  } catch (error) {
    const isInvalid = error instanceof QueryProblem && error.code === 'invalid_query'
    if (isInvalid) command.error(`the query cannot be parsed:${placesOf(text, error)}`)
    // Ctrl-C makes whatever is in flight fail, with various errors that do not matter.
    if (!signal.aborted) throw error
  }
  if (signal.aborted) context.exitCode = INTERRUPTED_EXIT_CODE
}

function readRange(command: Command, options: LogsOptions, nowMs: number, zone: string): TimeRange {
  const read = (name: 'from' | 'until'): Temporal.Instant | undefined => {
    const given = options[name]
    try {
      return given === undefined ? undefined : parseTime(given, nowMs, zone)
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error
      return command.error(`option '--${name} <when>' argument '${given}' is invalid. ${error.message}`)
    }
  }
  const until = read('until')
  const from = read('from') ?? until?.subtract(DEFAULT_RANGE)
  if (from !== undefined && from.epochMilliseconds >= (until?.epochMilliseconds ?? nowMs))
    command.error('--from must be before --until, which is now by default')
  return { from, until }
}

/** The query with a mark at the place of each error. */
function placesOf(text: string, { errors }: QueryProblem): string {
  const query = escapeControls(text)
  const places = errors.map(({ position, message }) => {
    const column = escapeControls(text.slice(0, position)).length
    return `\n  ${query}\n  ${' '.repeat(column)}^ ${message}`
  })
  return places.join('')
}

/** Says what may be missing in an answer. */
export async function reportGaps(
  { range, zone, context, report }: UserQuery,
  { complete_until: until, limited_by: limit }: Completeness,
): Promise<void> {
  if (limit !== undefined)
    await report(`the search ended at its limit of ${limit}, and more may match: pass a shorter range`)
  if (until === null) return report('it is not known how far the entries are complete')
  const lagMs = (range.until?.epochMilliseconds ?? context.nowMs()) - Date.parse(until)
  if (lagMs > COMPLETE_LAG_MS)
    await report(`complete up to ${zonedTime(until, zone)}: entries that were received later may be missing`)
}
