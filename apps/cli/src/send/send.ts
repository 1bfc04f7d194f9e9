import { addAbortSignal } from 'node:stream'
import { levels } from '@sluice/schema'
import { type Context, INTERRUPTED_EXIT_CODE } from '../context.ts'
import { environments } from '../environments.ts'
import { CliError, describeReadError } from '../errors.ts'
import { requireOneOf } from '../one-of.ts'
import { apiAccess, type ApiFlags } from '../service-access.ts'
import { requireDurationMs } from '../times.ts'
import { EntrySender, entryBytesMax } from './entry-sender.ts'
import { type EntryDefaults, lineToEntry } from './line-entry.ts'
import { LineSplitter } from './lines.ts'
import { Progress } from './progress.ts'
import { postLimits, RequestPoster } from './request-poster.ts'
import { openSources, type Source } from './sources.ts'
import { Tally } from './tally.ts'

export interface SendOptions extends ApiFlags {
  level: string
  service?: string
  environment?: string
  retryFor: string
}

/** `sluice send`: sends the lines of files, or of stdin, as entries. */
export async function send(files: readonly string[], options: SendOptions, context: Context): Promise<void> {
  const { retryForMs, ...defaults } = parseOptions(options)
  const api = await apiAccess(options, context)
  const sources = await openSources(files, context.stdin)
  const interrupted = context.abortOnInterrupt()
  const { nowMs, random } = context

  const startedAtMs = nowMs()
  const bytesTotal = totalBytes(sources)
  let bytesRead = 0
  const progress = new Progress(context.stderr, () => ({
    bytesRead,
    bytesTotal,
    accepted: tally.accepted,
    rejected: tally.rejected,
    elapsedMs: nowMs() - startedAtMs,
  }))
  const tally = new Tally((text) => progress.note(text))
  const poster = new RequestPoster({
    api,
    retryForMs,
    requestTimeoutMs: postLimits.requestTimeoutMs,
    signal: interrupted,
    nowMs,
    random,
    onPause: (reason, pauseMs) => progress.note(`Waiting ${(pauseMs / 1_000).toFixed(1)} s: ${reason}.`),
  })
  const sender = new EntrySender((entries) => poster.post(entries), tally)

  progress.start()
  const stopReading = AbortSignal.any([interrupted, sender.failed])
  const onRead = (bytes: number): void => void (bytesRead += bytes)
  const failures: CliError[] = []
  const noteFailure = (error: unknown): void => {
    if (!(error instanceof CliError)) throw error
    failures.push(error)
    progress.note(`sluice: ${error.message}`)
  }
  try {
    for (const source of sources) {
      await sendSource(source, defaults, { sender, tally, signal: stopReading, onRead }).catch(noteFailure)
    }
    await sender.end().catch(noteFailure)
  } finally {
    progress.stop()
  }
  await context.stdout.write(`${tally.summary(nowMs() - startedAtMs)}\n`)
  if (interrupted.aborted) context.exitCode = INTERRUPTED_EXIT_CODE
  else if (failures.length + tally.rejected + tally.unanswered > 0) context.exitCode = 1
}

/** Sends a source to its end, or until the signal is aborted. */
async function sendSource(
  source: Source,
  defaults: EntryDefaults,
  to: { sender: EntrySender; tally: Tally; signal: AbortSignal; onRead: (bytes: number) => void },
): Promise<void> {
  const { sender, tally, signal, onRead } = to
  if (signal.aborted) return
  const sourceDefaults = { ...defaults, service: defaults.service ?? source.service }
  try {
    for await (const { number, text, wasUtf8 } of readLines(source, signal, onRead)) {
      if (signal.aborted) return
      const origin = `${source.name}:${number}`
      if (text === undefined) tally.onTooLong(origin, entryBytesMax)
      if (text === undefined || text.trim() === '') continue
      if (!wasUtf8) tally.repaired += 1
      const entry = lineToEntry(text, sourceDefaults)
      const bytes = Buffer.byteLength(entry)
      if (bytes > entryBytesMax) tally.onTooLong(origin, entryBytesMax)
      else await sender.add({ entry, bytes, origin })
    }
  } catch (error) {
    if (signal.aborted) return
    const reason = describeReadError(error)
    throw reason === undefined ? error : new CliError(`cannot read the rest of ${source.name}: ${reason}`)
  }
}

async function* readLines(source: Source, signal: AbortSignal, onRead: (bytes: number) => void) {
  const splitter = new LineSplitter(entryBytesMax)
  for await (const chunk of addAbortSignal(signal, source.open())) {
    const bytes = chunk as Buffer
    onRead(bytes.length)
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
function parseOptions({ level, service, environment, retryFor }: SendOptions): EntryDefaults & {
  retryForMs: number
} {
  requireOneOf('--level', level, levels)
  if (environment !== undefined) requireOneOf('--environment', environment, environments)
  return { level, service, environment, retryForMs: requireDurationMs('--retry-for', retryFor) }
}
