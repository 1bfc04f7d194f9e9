import { withTimeout } from '@sluice/runtime'
import { addAbortSignal } from 'node:stream'
import { CliError, describeReadError } from '../errors.ts'
import { decompress, toUtf8 } from './decoding.ts'
import { type EntrySender, entryBytesMax } from './entry-sender.ts'
import type { LineSkipper } from './line-ranges.ts'
import { type Line, LineSplitter } from './lines.ts'
import { type LineOptions, SourceEntries, type SourceEntry } from '../lines/entries.ts'
import type { Source } from './sources.ts'
import type { Tally } from './tally.ts'

/** How long a record of a live stream waits for more lines. A program writes a stack trace at once. */
const continuationWaitMs = 500

/** How much of the input was sent or skipped. */
export interface Position {
  lines: number
  bytes: number
}

export interface Sending {
  readonly sender: EntrySender
  readonly tally: Tally
  readonly skipper: LineSkipper
  readonly position: Position
  readonly signal: AbortSignal
}

/**
 * Sends a source to its end, or until the signal is aborted. Then the last record is sent as far as it was read.
 *
 * @returns whether all lines were read
 * @throws CliError when the source cannot be read
 */
export async function sendSource(source: Source, options: LineOptions, sending: Sending): Promise<boolean> {
  if (sending.signal.aborted) return false
  const reader = new SourceReader(source, options, sending)
  try {
    return await reader.readAll()
  } catch (error) {
    if (sending.signal.aborted) return false
    const reason = describeReadError(error)
    throw reason === undefined
      ? error
      : new CliError(`cannot read the rest of ${source.name}: ${reason}`, { cause: error })
  } finally {
    await reader.finish()
  }
}

class SourceReader {
  readonly #source: Source
  readonly #sending: Sending
  readonly #entries: SourceEntries
  /** The lines of the input before this source. */
  readonly #linesBefore: number
  #isSkipping = false

  constructor(source: Source, options: LineOptions, sending: Sending) {
    const { defaults } = options
    this.#source = source
    this.#sending = sending
    this.#entries = new SourceEntries({
      ...options,
      defaults: { ...defaults, fallbackService: source.service },
    })
    this.#linesBefore = sending.position.lines
  }

  async readAll(): Promise<boolean> {
    const { signal } = this.#sending
    const batches = withPauses(
      readLines(this.#source, signal),
      continuationWaitMs,
      () => this.#entries.isWaiting,
    )
    for await (const lines of batches) {
      if (lines === undefined) await this.#send(this.#entries.flush())
      for (const line of lines ?? []) {
        if (signal.aborted) return false
        await this.#add(line)
      }
    }
    return !signal.aborted
  }

  /** Sends what waits for more lines. */
  async finish(): Promise<void> {
    await this.#send(this.#entries.flush())
  }

  async #add({ number, text, wasUtf8, bytes }: Line): Promise<void> {
    const { skipper, position, tally } = this.#sending
    const lineOfInput = this.#linesBefore + number
    const isSkipped = skipper.skips(lineOfInput)
    if (isSkipped !== this.#isSkipping) {
      // A record that begins in one part of the input must not continue in the other.
      await this.#send(this.#entries.flush())
      this.#isSkipping = isSkipped
    }
    if (text !== undefined) {
      if (!wasUtf8 && !isSkipped && text.trim() !== '') tally.repaired += 1
      await this.#send(this.#entries.push(text, lineOfInput))
    } else if (!isSkipped) tally.onTooLong(this.#originOf(lineOfInput), entryBytesMax)
    position.lines = lineOfInput
    position.bytes += bytes
  }

  async #send(entries: readonly SourceEntry[]): Promise<void> {
    if (this.#isSkipping) return
    const { sender, tally } = this.#sending
    for (const { entry, firstLine, lastLine } of entries) {
      const bytes = Buffer.byteLength(entry)
      const origin = this.#originOf(firstLine)
      if (bytes > entryBytesMax) {
        tally.onTooLong(origin, entryBytesMax)
        continue
      }
      await sender.add({ entry, bytes, origin, firstLine, lastLine })
    }
  }

  #originOf(lineOfInput: number): string {
    return `${this.#source.name}:${lineOfInput - this.#linesBefore}`
  }
}

/** Yields the lines of each piece of the source at once: an iteration per line would cost more than the rest. */
async function* readLines(source: Source, signal: AbortSignal): AsyncGenerator<Line[]> {
  const splitter = new LineSplitter(entryBytesMax)
  for await (const bytes of toUtf8(decompress(addAbortSignal(signal, source.open()), source.name))) {
    yield [...splitter.push(bytes)]
  }
  yield [...splitter.end()]
}

/**
 * Yields the values of an iteration, and `undefined` once whenever the next value has not come for a while.
 *
 * @param isWaiting whether the consumer wants to know
 */
async function* withPauses<Value>(
  values: AsyncIterable<Value>,
  pauseMs: number,
  isWaiting: () => boolean,
): AsyncGenerator<Value | undefined> {
  const iterator = values[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = iterator.next()
      let isSettled = false
      const settled = next.then(
        () => (isSettled = true),
        () => (isSettled = true),
      )
      if (isWaiting()) {
        await withTimeout(settled, pauseMs).catch(() => undefined)
        if (!isSettled) yield undefined
      }
      const result = await next
      if (result.done === true) return
      yield result.value
    }
  } finally {
    await iterator.return?.()
  }
}
