import { Writable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { EntrySender } from './entry-sender.ts'
import { type EntryContext, entryOfLine } from './line-entry.ts'
import { LineSplitter } from './line-splitter.ts'
import type { PinoConfig, Settings } from './options.ts'
import { Pace } from './pace.ts'

/** One request, and a millisecond of work. Requests are sent, and responses read, in between. */
const LINES_PER_ROUND = 100
/** 100 lines of usual length are shorter. */
const CHARACTERS_PER_ROUND = 64 * 1024
/** What JSON needs for a control character. */
const BYTES_PER_CHARACTER_MAX = 6

/** What pino's thread writes lines to. It never emits an error: pino would end the transport. */
export class TransportStream extends Writable {
  readonly #sender: EntrySender
  readonly #receiveConfig: () => Promise<PinoConfig>
  readonly #settings: Settings
  readonly #splitter = new LineSplitter()
  readonly #pace: Pace
  /** Known before the first line. */
  #context: EntryContext | undefined
  /** What is left of the round, for which the queue has room. Pieces may be shorter than a round. */
  #linesLeft = 0
  #charactersLeft = 0
  /** The write that is being processed. */
  #writing: Promise<void> = Promise.resolve()

  constructor(sender: EntrySender, config: () => Promise<PinoConfig>, settings: Settings) {
    super({ decodeStrings: false })
    this.#sender = sender
    this.#receiveConfig = config
    this.#settings = settings
    this.#pace = new Pace(sender.client, settings.whenFull)
  }

  override _write(piece: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#writing = this.#take(piece.toString(), done)
  }

  override _final(done: () => void): void {
    void this.#close(done)
  }

  /** pino calls this for `logger.flush(callback)`. The callback gets no error: pino would end the transport. */
  async flush(done: () => void): Promise<void> {
    await this.#writing
    await this.#sender.client.flush({ timeoutMs: this.#settings.flushTimeoutMs })
    done()
  }

  async #take(piece: string, done: () => void): Promise<void> {
    const context = await this.#readContext()
    // With `wait`, the application waits as well, or has chosen to keep its lines in memory.
    if (this.#pace.isBehind(piece.length))
      this.#sender.reports.lost(this.#splitter.push(piece).length, BEHIND)
    else await this.#sendLines(piece, context)
    done()
  }

  async #sendLines(piece: string, context: EntryContext): Promise<void> {
    this.#pace.begin(piece.length)
    for (const line of this.#splitter.push(piece)) {
      if (this.#linesLeft === 0 || line.length > this.#charactersLeft) await this.#beginRound(line.length)
      this.#linesLeft -= 1
      this.#charactersLeft -= line.length
      this.#sender.send(entryOfLine(line, context))
    }
    this.#pace.end()
  }

  /** @param characters of the first line, which may be longer than a round */
  async #beginRound(characters: number): Promise<void> {
    this.#linesLeft = Math.min(LINES_PER_ROUND, this.#settings.client.batchEntriesMax ?? LINES_PER_ROUND)
    this.#charactersLeft = Math.max(CHARACTERS_PER_ROUND, characters)
    await setImmediate()
    await this.#pace.wait(this.#charactersLeft * BYTES_PER_CHARACTER_MAX)
  }

  async #readContext(): Promise<EntryContext> {
    this.#context ??= {
      ...(await this.#receiveConfig()),
      service: this.#settings.client.service,
    }
    return this.#context
  }

  async #close(done: () => void): Promise<void> {
    for (const line of this.#splitter.end()) this.#sender.send(entryOfLine(line, await this.#readContext()))
    await this.#sender.client.close({ timeoutMs: this.#settings.flushTimeoutMs })
    this.#sender.reports.end()
    done()
  }
}

const BEHIND = 'dropped: the application logs faster than the transport reads'
