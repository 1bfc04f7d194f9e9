import type { Level } from '@sluice/records'
import { withTimeout } from '@sluice/runtime'
import { environments, levels } from '@sluice/schema'
import { type Command, Option } from 'commander'
import { addAbortSignal } from 'node:stream'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { CliError, throwReadError } from '../errors.ts'
import { entriesOf, type EntryDefaults } from '../lines/entries.ts'
import { type LogRecord, RecordAssembler } from '../lines/record-assembler.ts'
import { parseTimeZone, TimeReader } from '../lines/times.ts'
import { withConnections, withExamples } from '../options.ts'
import { decompress, type Line, openSources, readLines, type Source } from '../send/input.ts'
import { formatLineRanges, type LineRange, linesToSkip, parseLineRanges } from '../send/line-ranges.ts'
import { EntrySender, entryBytesMax } from '../send/sender.ts'
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
  ).action((files: string[], given: SendOptions) => sendFiles(files, given, context))
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

async function sendFiles(files: readonly string[], options: SendOptions, context: Context): Promise<void> {
  const rest = await sendSources(await openSources(files, context.stdin), options, context)
  if (rest !== '')
    await context.stderr.write(
      `To send the rest, run the same command with the same input and --skip-lines ${rest}\n`,
    )
}

/** Sends sources one after the other, and prints the summary. @returns the lines to skip when the rest is sent; '' if there are none */
export async function sendSources(
  sources: readonly Source[],
  options: SendOptions,
  context: Context,
): Promise<string> {
  const { level, service, environment, raw, timezone, retryFor = 300_000, skipLines: skipped = [] } = options
  const defaults = { level, service, environment }
  const { nowMs, stdout } = context
  const times = raw ? undefined : new TimeReader(timezone ?? Temporal.Now.timeZoneId(), nowMs)
  const api = await httpAccess('api', options, context)
  const interrupted = context.abortOnInterrupt()
  const startedAtMs = nowMs()
  const sender = new EntrySender({ api, retryForMs: retryFor, interrupted, context })
  const signal = AbortSignal.any([interrupted, sender.failed])
  let failures = 0
  const noteFailure = (error: unknown): void => {
    if (!(error instanceof CliError)) throw error
    failures += 1
    sender.note(`sluice: ${error.message}`)
  }
  let areLinesKnown = true
  let isAllRead = true
  for (const source of sources) {
    const reading = sendSource(source, { defaults, times, sender, skipped, signal })
    // After a file that could not be read to its end, the numbers of the lines are unknown.
    const isRead = await reading.catch((error: unknown) => {
      areLinesKnown = false
      noteFailure(error)
    })
    isAllRead &&= isRead === true
  }
  await sender.end().catch(noteFailure)
  const isComplete = isAllRead && sender.unanswered === 0
  const done = linesToSkip(sender.lines, sender.unansweredLines, skipped)
  const firstLine = done[0]?.first === 1 ? done[0].last + 1 : 1
  const verb = interrupted.aborted ? 'Interrupted' : 'Stopped'
  const stop = `${verb}${areLinesKnown ? ` at line ${formatCount(firstLine)}` : ''}: `
  await stdout.write(`${isComplete ? '' : stop}${sender.summary(nowMs() - startedAtMs)}\n`)
  if (interrupted.aborted) context.exitCode = INTERRUPTED_EXIT_CODE
  else if (failures + sender.rejected + sender.unanswered > 0) context.exitCode = 1
  return isComplete || !areLinesKnown ? '' : formatLineRanges(done)
}

/** How long a record of a live stream waits for more lines. A program writes a stack trace at once. */
const CONTINUATION_WAIT_MS = 500

interface Sending {
  readonly defaults: Omit<EntryDefaults, 'fallbackService'>
  readonly times: TimeReader | undefined
  readonly sender: EntrySender
  readonly skipped: readonly LineRange[]
  readonly signal: AbortSignal
}

/** Sends a source, or what was read of it when the signal is aborted. @returns whether all lines were read @throws CliError */
async function sendSource(source: Source, options: Sending): Promise<boolean> {
  const { times, sender, skipped, signal } = options
  if (signal.aborted) return false
  const defaults = { ...options.defaults, fallbackService: source.service }
  const records = new RecordAssembler(times)
  const linesBefore = sender.lines
  const originOf = (line: number): string => `${source.name}:${line - linesBefore}`
  let isSkipping = false

  async function send(record: LogRecord | undefined): Promise<void> {
    if (isSkipping || record === undefined) return
    const { firstLine: first, lastLine: last } = record
    for (const entry of entriesOf(record, defaults))
      await sender.add({ entry, first, last, origin: originOf(first) })
  }

  async function add({ text, wasUtf8 }: Line): Promise<void> {
    const number = sender.lines + 1
    const isSkipped = skipped.some(({ first, last }) => first <= number && number <= last)
    if (isSkipped !== isSkipping) {
      // A record that begins in one part of the input must not continue in the other.
      await send(records.flush())
      isSkipping = isSkipped
    }
    if (text !== undefined) {
      if (!wasUtf8 && !isSkipped && text.trim() !== '') sender.repaired += 1
      await send(records.push(text, number))
    } else if (!isSkipped) sender.onTooLong(originOf(number))
    sender.lines = number
  }

  const stream = addAbortSignal(signal, source.open())
  const pieces = readLines(decompress(stream, source.name), entryBytesMax)
  try {
    for (;;) {
      const next = pieces.next()
      if (records.isOpen) await withTimeout(next, CONTINUATION_WAIT_MS).catch(() => send(records.flush()))
      const { done, value } = await next
      if (done === true) return !signal.aborted
      for (const line of value) {
        if (signal.aborted) return false
        await add(line)
      }
    }
  } catch (error) {
    if (signal.aborted) return false
    return throwReadError(`the rest of ${source.name}`)(error)
  } finally {
    // Stdin that is still open would keep the process alive.
    stream.destroy()
    await send(records.flush())
  }
}
