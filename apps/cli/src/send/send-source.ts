import { withTimeout } from '@sluice/runtime'
import { addAbortSignal } from 'node:stream'
import { throwReadError } from '../errors.ts'
import { entriesOf, type EntryDefaults } from '../lines/entries.ts'
import { type LogRecord, RecordAssembler } from '../lines/record-assembler.ts'
import type { TimeReader } from '../lines/times.ts'
import { decompress, type Line, readLines, type Source } from './input.ts'
import type { LineRange } from './line-ranges.ts'
import type { SendReport } from './report.ts'
import { type EntrySender, entryBytesMax } from './sender.ts'

/** How long a record of a live stream waits for more lines. A program writes a stack trace at once. */
const CONTINUATION_WAIT_MS = 500

interface Sending {
  readonly defaults: Omit<EntryDefaults, 'fallbackService'>
  readonly times: TimeReader | undefined
  readonly sender: EntrySender
  readonly report: SendReport
  readonly skipped: readonly LineRange[]
  readonly signal: AbortSignal
}

/** Sends a source, or what was read of it when the signal is aborted. @returns whether all lines were read @throws CliError */
export async function sendSource(source: Source, options: Sending): Promise<boolean> {
  const { times, sender, report, skipped, signal } = options
  if (signal.aborted) return false
  const defaults = { ...options.defaults, fallbackService: source.service }
  const records = new RecordAssembler(times)
  const linesBefore = report.lines
  const originOf = (line: number): string => `${source.name}:${line - linesBefore}`
  let isSkipping = false

  async function send(record: LogRecord | undefined): Promise<void> {
    if (isSkipping || record === undefined) return
    const { firstLine: first, lastLine: last } = record
    for (const entry of entriesOf(record, defaults))
      await sender.add({ entry, first, last, origin: originOf(first) })
  }

  async function add({ text, wasUtf8 }: Line): Promise<void> {
    const number = report.lines + 1
    const isSkipped = skipped.some(({ first, last }) => first <= number && number <= last)
    if (isSkipped !== isSkipping) {
      // A record that begins in one part of the input must not continue in the other.
      await send(records.flush())
      isSkipping = isSkipped
    }
    if (text !== undefined) {
      if (!wasUtf8 && !isSkipped && text.trim() !== '') report.repaired += 1
      await send(records.push(text, number))
    } else if (!isSkipped) report.onTooLong(originOf(number), entryBytesMax)
    report.lines = number
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
