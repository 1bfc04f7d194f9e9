import { withTimeout } from '@sluice/runtime'
import { addAbortSignal } from 'node:stream'
import { throwReadError } from '../errors.ts'
import { entriesOf, type EntryDefaults } from '../lines/entries.ts'
import { type LogRecord, RecordAssembler } from '../lines/record-assembler.ts'
import type { TimeReader } from '../lines/times.ts'
import { decompress, type Line, readLines, type Source } from './input.ts'
import type { SendReport } from './report.ts'
import { type EntrySender, entryBytesMax } from './sender.ts'

/** How long a record of a live stream waits for more lines. A program writes a stack trace at once. */
const CONTINUATION_WAIT_MS = 500

interface Sending {
  readonly defaults: Omit<EntryDefaults, 'fallbackService'>
  readonly times: TimeReader | undefined
  readonly sender: EntrySender
  readonly report: SendReport
  readonly signal: AbortSignal
}

/** Sends a source, or what was read of it when the signal is aborted. @returns whether all lines were read @throws CliError */
export async function sendSource(source: Source, options: Sending): Promise<boolean> {
  const { times, sender, report, signal } = options
  const defaults = { ...options.defaults, fallbackService: source.service }
  const records = new RecordAssembler(times)
  const linesBefore = report.lines
  const originOf = (line: number): string => `${source.name}:${line - linesBefore}`

  async function send(record: LogRecord | undefined): Promise<void> {
    if (record === undefined) return
    const { firstLine: line } = record
    for (const entry of entriesOf(record, defaults)) await sender.add({ entry, line, origin: originOf(line) })
  }

  async function add({ text, wasUtf8 }: Line): Promise<void> {
    const number = report.lines + 1
    if (text !== undefined) {
      if (!wasUtf8 && text.trim() !== '') report.repaired += 1
      await send(records.push(text, number))
    } else report.onTooLong(originOf(number), entryBytesMax)
    report.lines = number
  }

  const stop = (): false => {
    report.stopBefore(report.lines + 1, originOf(report.lines + 1))
    return false
  }
  if (signal.aborted) return stop()
  const stream = addAbortSignal(signal, source.open())
  const pieces = readLines(decompress(stream, source.name), entryBytesMax)
  try {
    for (;;) {
      const next = pieces.next()
      if (records.isOpen) await withTimeout(next, CONTINUATION_WAIT_MS).catch(() => send(records.flush()))
      const { done, value } = await next
      if (done === true) return signal.aborted ? stop() : true
      for (const line of value) {
        if (signal.aborted) return stop()
        await add(line)
      }
    }
  } catch (error) {
    if (signal.aborted) return stop()
    return throwReadError(`the rest of ${source.name}`)(error)
  } finally {
    // Stdin that is still open would keep the process alive.
    stream.destroy()
    await send(records.flush())
  }
}
