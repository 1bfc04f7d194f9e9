import { type Command, InvalidArgumentError } from 'commander'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { type Flags, httpAccess } from '../service-access.ts'
import { escapeControls } from '../terminal.ts'
import { parseTime } from '../times.ts'
import { zonedTime } from './entry-lines.ts'
import { type Completeness, LATE_S, QueryClient, QueryError } from './query-client.ts'

/** Options of all commands that read entries. */
export interface QueryOptions extends Flags {
  readonly from?: string
  readonly until?: string
  readonly timezone?: string
  readonly json?: true
}

/** A query that a user has written, and what is needed to answer it. */
export interface UserQuery {
  readonly text: string
  readonly from: Temporal.Instant
  /** Undefined: now. */
  readonly until: Temporal.Instant | undefined
  readonly zone: string
  readonly client: QueryClient
  readonly context: Context
  readonly report: (message: string) => Promise<void>
}

/** Runs a query until it is answered or interrupted. Shows the errors in its text. */
export async function withQuery(
  command: Command,
  words: readonly string[],
  options: QueryOptions,
  context: Context,
  act: (query: UserQuery) => Promise<void>,
): Promise<void> {
  const text = words.join(' ')
  const zone = options.timezone ?? Temporal.Now.timeZoneId()
  const timeOf = (name: 'from' | 'until'): Temporal.Instant | undefined => {
    const given = options[name]
    try {
      return given === undefined ? undefined : parseTime(given, context.nowMs(), zone)
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error
      return command.error(`option '--${name} <when>' argument '${given}' is invalid. ${error.message}`)
    }
  }
  const until = timeOf('until')
  const from = timeOf('from') ?? (until ?? parseTime('now', context.nowMs())).subtract({ minutes: 15 })
  const access = await httpAccess('query', options, context)
  const signal = context.abortOnInterrupt()
  const report = (message: string) => context.stderr.write(`sluice: ${escapeControls(message)}\n`)
  try {
    await act({ text, from, until, zone, client: new QueryClient(access, signal), context, report })
  } catch (error) {
    if (error instanceof QueryError && error.places.length > 0) command.error(placesOf(text, error.places))
    // Ctrl-C makes whatever is in flight fail, with various errors that do not matter.
    if (!signal.aborted) throw error
  }
  if (signal.aborted) context.exitCode = INTERRUPTED_EXIT_CODE
}

/** The query with a mark at the place of each error. */
export function placesOf(text: string, places: QueryError['places']): string {
  const lines = places.flatMap(({ position, message }) => {
    const column = escapeControls(text.slice(0, position)).length
    return [`  ${escapeControls(text)}`, `  ${' '.repeat(column)}^ ${message}`]
  })
  return ['the query cannot be parsed:', ...lines].join('\n')
}

/** Says what may be missing in an answer. */
export async function reportGaps(
  { until, zone, context, report }: UserQuery,
  { complete_until: complete, limited_by: limit }: Completeness,
): Promise<void> {
  if (limit !== undefined)
    await report(`the search ended at its limit of ${limit}, and more may match: pass a shorter range`)
  const lagMs = (until?.epochMilliseconds ?? context.nowMs()) - Date.parse(complete ?? '')
  if (complete === null) await report('it is not known up to which time the entries are complete')
  else if (lagMs > LATE_S * 1_000)
    await report(
      `complete up to ${zonedTime(complete, zone)}: entries that were received later may be missing`,
    )
}
