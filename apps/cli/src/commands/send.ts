import { environments, levels } from '@sluice/schema'
import type { Command } from 'commander'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { CliError } from '../errors.ts'
import { type LineOptions, requireTimeZone } from '../lines/entries.ts'
import { requireOneOf, withApiOptions, withExamples } from '../options.ts'
import { EntrySender } from '../send/entry-sender.ts'
import {
  formatLineRanges,
  type LineRange,
  LineSkipper,
  linesToSkip,
  parseLineRanges,
} from '../send/line-ranges.ts'
import { formatCount, Progress } from '../send/progress.ts'
import { type Position, sendSource } from '../send/send-source.ts'
import { openSources, type Source } from '../send/sources.ts'
import { Tally } from '../send/tally.ts'
import { apiAccess, type ApiFlags } from '../service-access.ts'
import { requireDurationMs } from '../times.ts'

export function defineSend(command: Command, context: Context): void {
  const options = withApiOptions(
    command
      .argument(
        '[files...]',
        'files with lines of text or JSON, also compressed with gzip, zstd or brotli; stdin if omitted or -',
      )
      .option('--level <level>', 'level of lines without one', 'info')
      .option('--raw', 'send each line as a message, whatever it contains')
      .option(
        '--timezone <zone>',
        'zone of times without an offset, such as UTC or Europe/Berlin (default: that of this machine)',
      )
      .option(
        '--service <name>',
        'service of lines without one (default: the name of the file, without extension)',
      )
      .option('--environment <name>', 'environment of lines without one: development, staging or production')
      .option(
        '--skip-lines <lines>',
        'lines of the input that are not sent, to continue after an interruption: a number, or ranges such as 1-200,301-400',
      )
      .option('--retry-for <time>', 'how long to retry while the API is overloaded or unavailable', '5m'),
  )
  withExamples(
    options.addHelpText('after', LINES_HELP),
    ['send /var/log/*.log', 'the lines of files'],
    ['send app.log.gz --environment production', 'a compressed file'],
    ['send app.log --skip-lines 58500', 'the rest of the lines, after an interruption'],
    ['send --service web --level warn', 'the lines of stdin, as they come'],
  ).action((files: string[], given: SendOptions) => send(files, given, context))
}

const LINES_HELP = `
Times, levels, programs and stack traces are recognized in the formats of most programs. A line that is a JSON object is sent
as an entry with all its fields; names such as "severity", "@timestamp" and "msg" are understood. What a line does not have
comes from the flags. Any other line becomes the message of an entry. Blank lines are skipped. With --raw, each line is a
message. Lines of stdin are sent within a second.`

interface SendOptions extends ApiFlags {
  level: string
  service?: string
  environment?: string
  raw?: true
  timezone?: string
  retryFor: string
  skipLines?: string
}

/** `sluice send`: sends the lines of files, or of stdin, as entries. */
async function send(files: readonly string[], options: SendOptions, context: Context): Promise<void> {
  const { retryForMs, skipped, lines } = parseOptions(options, context)
  const api = await apiAccess(options, context)
  const sources = await openSources(files, context.stdin)
  const interrupted = context.abortOnInterrupt()
  const { nowMs, random } = context

  const startedAtMs = nowMs()
  const bytesTotal = totalBytes(sources)
  const position: Position = { lines: 0, bytes: 0 }
  const progress = new Progress(context.stderr, () => ({
    bytesRead: position.bytes,
    bytesTotal,
    accepted: tally.accepted,
    rejected: tally.rejected,
    elapsedMs: nowMs() - startedAtMs,
  }))
  const tally = new Tally((text) => progress.note(text))
  const sender = new EntrySender(
    {
      api,
      retryForMs,
      interrupted,
      nowMs,
      random,
      onPause: (reason, pauseMs) => progress.note(`Waiting ${(pauseMs / 1_000).toFixed(1)} s: ${reason}.`),
    },
    tally,
  )

  progress.start()
  const signal = AbortSignal.any([interrupted, sender.failed])
  const failures: CliError[] = []
  const noteFailure = (error: unknown): void => {
    if (!(error instanceof CliError)) throw error
    failures.push(error)
    progress.note(`sluice: ${error.message}`)
  }
  const to = { sender, tally, skipper: new LineSkipper(skipped), position, signal }
  let unreadSources = 0
  let isAllRead = true
  try {
    for (const source of sources) {
      const isRead = await sendSource(source, lines, to).catch((error: unknown) => {
        unreadSources += 1
        noteFailure(error)
      })
      isAllRead &&= isRead === true
    }
    await sender.end().catch(noteFailure)
  } finally {
    progress.stop()
  }
  const isComplete = isAllRead && tally.unanswered === 0
  const stop = isComplete ? '' : describeStop(position, bytesTotal, interrupted.aborted)
  await context.stdout.write(`${stop}${tally.summary(nowMs() - startedAtMs)}\n`)
  // After a file that could not be read to its end, the numbers of the lines are unknown.
  if (!isComplete && unreadSources === 0) {
    await adviseHowToContinue(linesToSkip(position.lines, tally.unansweredLines, skipped), context)
  }
  if (interrupted.aborted) context.exitCode = INTERRUPTED_EXIT_CODE
  else if (failures.length + tally.rejected + tally.unanswered > 0) context.exitCode = 1
}

/** For example `Interrupted at 2 % of the input (5,310,000 of 310,000,000 bytes): `. */
function describeStop({ bytes }: Position, bytesTotal: number | undefined, isInterrupted: boolean): string {
  const verb = isInterrupted ? 'Interrupted' : 'Stopped'
  if (bytesTotal === undefined || bytesTotal === 0) return `${verb}: `
  const percent = Math.min(100, Math.floor((bytes / bytesTotal) * 100))
  return `${verb} at ${percent} % of the input (${formatCount(bytes)} of ${formatCount(bytesTotal)} bytes): `
}

async function adviseHowToContinue(done: readonly LineRange[], { stderr }: Context): Promise<void> {
  const lines = formatLineRanges(done)
  if (lines === undefined) return
  await stderr.write(`To send the rest, run the same command with the same input and --skip-lines ${lines}\n`)
}

function totalBytes(sources: readonly Source[]): number | undefined {
  let total = 0
  for (const { bytes } of sources) {
    if (bytes === undefined) return undefined
    total += bytes
  }
  return total
}

/** @throws UsageError */
function parseOptions(
  { level, service, environment, raw, timezone, retryFor, skipLines }: SendOptions,
  { nowMs }: Context,
): { lines: LineOptions; retryForMs: number; skipped: readonly LineRange[] } {
  const lines = {
    defaults: {
      level: requireOneOf('--level', level, levels),
      service,
      fallbackService: undefined,
      environment:
        environment === undefined ? undefined : requireOneOf('--environment', environment, environments),
    },
    isRaw: raw === true,
    zone: requireTimeZone(timezone),
    nowMs,
  }
  const skipped = skipLines === undefined ? [] : parseLineRanges(skipLines)
  return { lines, skipped, retryForMs: requireDurationMs('--retry-for', retryFor) }
}
