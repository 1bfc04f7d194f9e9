import type { Level } from '@sluice/records'
import { environments, levels } from '@sluice/schema'
import { type Command, Option } from 'commander'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { CliError } from '../errors.ts'
import { parseTimeZone, TimeReader } from '../lines/times.ts'
import { withConnections, withExamples } from '../options.ts'
import { openSources } from '../send/input.ts'
import { formatLineRanges, type LineRange, linesToSkip, parseLineRanges } from '../send/line-ranges.ts'
import { SendReport } from '../send/report.ts'
import { sendSource } from '../send/send-source.ts'
import { EntrySender } from '../send/sender.ts'
import { type Flags, httpAccess } from '../service-access.ts'
import { formatCount } from '../terminal.ts'
import { parseDuration } from '../times.ts'

export function define(command: Command, context: Context): void {
  const options = command
    .argument('[files...]', 'text or JSON, also compressed with gzip, zstd or brotli; stdin if omitted or -')
    .addOption(new Option('--level <level>', 'level of lines without one').choices(levels).default('info'))
    .option('--raw', 'send each line as a message, whatever it contains')
    .option('--timezone <zone>', 'zone of times without an offset (default: of this machine)', parseTimeZone)
    .option('--service <name>', 'service of lines without one (default: the name of the file)')
    .addOption(new Option('--environment <name>', 'environment of lines without one').choices(environments))
    .option('--skip-lines <lines>', 'lines not to send: 58500, or ranges: 1-200,301-400', parseLineRanges)
    .option('--retry-for <time>', 'how long to retry without the API (default: 5m)', parseDuration)
  withExamples(
    withConnections(options, 'api').addHelpText('after', LINES_HELP),
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

interface SendOptions extends Flags {
  level: Level
  service?: string
  environment?: string
  raw?: true
  timezone?: string
  retryFor?: number
  skipLines?: readonly LineRange[]
}

async function send(files: readonly string[], options: SendOptions, context: Context): Promise<void> {
  const { level, service, environment, raw, timezone, retryFor = 300_000, skipLines: skipped = [] } = options
  const defaults = { level, service, environment }
  const { nowMs, stdout, stderr } = context
  const times = raw ? undefined : new TimeReader(timezone ?? Temporal.Now.timeZoneId(), nowMs)
  const api = await httpAccess('api', options, context)
  const sources = await openSources(files, context.stdin)
  const interrupted = context.abortOnInterrupt()

  const startedAtMs = nowMs()
  const report = new SendReport(stderr)
  const sender = new EntrySender({ api, retryForMs: retryFor, interrupted, nowMs }, report)
  const signal = AbortSignal.any([interrupted, sender.failed])
  let failures = 0
  const noteFailure = (error: unknown): void => {
    if (!(error instanceof CliError)) throw error
    failures += 1
    report.note(`sluice: ${error.message}`)
  }
  let areLinesKnown = true
  let isAllRead = true
  try {
    for (const source of sources) {
      const reading = sendSource(source, { defaults, times, sender, report, skipped, signal })
      // After a file that could not be read to its end, the numbers of the lines are unknown.
      const isRead = await reading.catch((error: unknown) => {
        areLinesKnown = false
        noteFailure(error)
      })
      isAllRead &&= isRead === true
    }
    await sender.end().catch(noteFailure)
  } finally {
    report.end()
  }
  const isComplete = isAllRead && report.unanswered === 0
  const done = linesToSkip(report.lines, report.unansweredLines, skipped)
  const firstLine = done[0]?.first === 1 ? done[0].last + 1 : 1
  const verb = interrupted.aborted ? 'Interrupted' : 'Stopped'
  const stop = `${verb}${areLinesKnown ? ` at line ${formatCount(firstLine)}` : ''}: `
  await stdout.write(`${isComplete ? '' : stop}${report.summary(nowMs() - startedAtMs)}\n`)
  const rest = formatLineRanges(done)
  if (!isComplete && areLinesKnown && rest !== '')
    await stderr.write(
      `To send the rest, run the same command with the same input and --skip-lines ${rest}\n`,
    )
  if (interrupted.aborted) context.exitCode = INTERRUPTED_EXIT_CODE
  else if (failures + report.rejected + report.unanswered > 0) context.exitCode = 1
}
