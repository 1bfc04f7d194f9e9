import { addAbortSignal } from 'node:stream'
import { levels } from '@sluice/schema'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { environments } from '../environments.ts'
import { CliError, describeReadError } from '../errors.ts'
import { requireOneOf } from '../one-of.ts'
import { apiAccess, type ApiFlags } from '../service-access.ts'
import { requireDurationMs } from '../times.ts'
import { decompress } from './compression.ts'
import { EntrySender, entryBytesMax, type OutgoingEntry } from './entry-sender.ts'
import { type EntryDefaults, lineToEntry } from './line-entry.ts'
import { formatLineRanges, type LineRange, LineSkipper, linesToSkip, parseLineRanges } from './line-ranges.ts'
import { type Line, LineSplitter } from './lines.ts'
import { formatCount, Progress } from './progress.ts'
import { openSources, type Source } from './sources.ts'
import { Tally } from './tally.ts'

export interface SendOptions extends ApiFlags {
  level: string
  service?: string
  environment?: string
  retryFor: string
  skipLines?: string
}

/** How much of the input was sent or skipped. */
interface Position {
  lines: number
  bytes: number
}

/** `sluice send`: sends the lines of files, or of stdin, as entries. */
export async function send(files: readonly string[], options: SendOptions, context: Context): Promise<void> {
  const { retryForMs, skipped, ...defaults } = parseOptions(options)
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
      const isRead = await sendSource(source, defaults, to).catch((error: unknown) => {
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

/**
 * Sends a source to its end, or until the signal is aborted.
 *
 * @returns whether all lines were read
 */
async function sendSource(
  source: Source,
  defaults: EntryDefaults,
  to: {
    sender: EntrySender
    tally: Tally
    skipper: LineSkipper
    position: Position
    signal: AbortSignal
  },
): Promise<boolean> {
  const { sender, tally, skipper, position, signal } = to
  if (signal.aborted) return false
  const sourceDefaults = { ...defaults, service: defaults.service ?? source.service }
  try {
    for await (const line of readLines(source, signal)) {
      if (signal.aborted) return false
      const lineOfInput = position.lines + 1
      const outgoing = skipper.skips(lineOfInput)
        ? undefined
        : toOutgoing(line, lineOfInput, source, sourceDefaults, tally)
      if (outgoing !== undefined) await sender.add(outgoing)
      position.lines = lineOfInput
      position.bytes += line.bytes
    }
    return true
  } catch (error) {
    if (signal.aborted) return false
    const reason = describeReadError(error)
    throw reason === undefined
      ? error
      : new CliError(`cannot read the rest of ${source.name}: ${reason}`, { cause: error })
  }
}

/** @returns undefined for lines that are not sent: blank ones, and those that are too long */
function toOutgoing(
  { number, text, wasUtf8 }: Line,
  line: number,
  source: Source,
  defaults: EntryDefaults,
  tally: Tally,
): OutgoingEntry | undefined {
  const origin = `${source.name}:${number}`
  if (text === undefined) tally.onTooLong(origin, entryBytesMax)
  if (text === undefined || text.trim() === '') return undefined
  if (!wasUtf8) tally.repaired += 1
  const entry = lineToEntry(text, defaults)
  const bytes = Buffer.byteLength(entry)
  if (bytes <= entryBytesMax) return { entry, bytes, origin, line }
  tally.onTooLong(origin, entryBytesMax)
  return undefined
}

async function* readLines(source: Source, signal: AbortSignal): AsyncGenerator<Line> {
  const splitter = new LineSplitter(entryBytesMax)
  for await (const bytes of decompress(addAbortSignal(signal, source.open()), source.name)) {
    yield* splitter.push(bytes)
  }
  yield* splitter.end()
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
function parseOptions({ level, service, environment, retryFor, skipLines }: SendOptions): EntryDefaults & {
  retryForMs: number
  skipped: readonly LineRange[]
} {
  requireOneOf('--level', level, levels)
  if (environment !== undefined) requireOneOf('--environment', environment, environments)
  const skipped = skipLines === undefined ? [] : parseLineRanges(skipLines)
  return { level, service, environment, skipped, retryForMs: requireDurationMs('--retry-for', retryFor) }
}
