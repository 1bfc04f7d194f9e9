import type { Output } from '../context.ts'
import { escapeControls, formatCount } from '../terminal.ts'
import type { LineRange } from './line-ranges.ts'
import type { OutgoingEntry } from './sender.ts'

/** The first rejections show what is wrong. Thousands more would add nothing. */
const REJECTIONS_SHOWN_MAX = 10
/** Faster changes are not visible. */
const REDRAW_INTERVAL_MS = 100
const CLEAR_LINE = '\r\u001B[2K'

/** Counts the outcomes of lines and entries. Prints the first rejections and, on a terminal, a line with the counts below them. */
export class SendReport {
  readonly #stderr: Output
  #timer: NodeJS.Timeout | undefined
  #rejections = 0
  /** Lines of the whole input that were read, the skipped ones included. */
  lines = 0
  /** Lines that were not valid UTF-8, and were sent with U+FFFD in place of the invalid bytes. */
  repaired = 0
  /** Entries with a response. */
  answered = 0
  accepted = 0
  /** Lines and entries too long to be sent. */
  tooLong = 0
  /** Entries that were not sent, or whose outcome is unknown. */
  unanswered = 0
  /** Their lines, by request. Nothing is sent after a failure, so there are few. */
  readonly unansweredLines: LineRange[] = []

  constructor(stderr: Output) {
    this.#stderr = stderr
  }

  get rejected(): number {
    return this.answered - this.accepted + this.tooLong
  }

  start(): void {
    if (this.#stderr.isTerminal) this.#timer = setInterval(() => this.#write(''), REDRAW_INTERVAL_MS).unref()
  }

  stop(): void {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#timer = undefined
    void this.#stderr.write(CLEAR_LINE)
  }

  /** Prints a line that stays. It may be untrusted: it is made safe to print. */
  note(line: string): void {
    this.#write(`${escapeControls(line)}\n`)
  }

  #write(note: string): void {
    const counts = `${formatCount(this.accepted)} accepted, ${formatCount(this.rejected)} rejected`
    void this.#stderr.write(this.#timer === undefined ? note : `${CLEAR_LINE}${note}${counts}`)
  }

  onRejection(origin: string, reason: string): void {
    this.#rejections += 1
    if (this.#rejections > REJECTIONS_SHOWN_MAX) return
    this.note(`${origin}: ${reason}`)
    if (this.#rejections === REJECTIONS_SHOWN_MAX) this.note('Further rejections are not shown.')
  }

  onTooLong(origin: string, bytesMax: number): void {
    this.tooLong += 1
    this.onRejection(origin, `longer than ${formatCount(bytesMax)} bytes, not sent`)
  }

  onUnanswered(entries: readonly OutgoingEntry[]): void {
    const [first, last] = [entries[0], entries.at(-1)]
    if (first === undefined || last === undefined) return
    this.unanswered += entries.length
    this.unansweredLines.push({ first: first.firstLine, last: last.lastLine })
  }

  summary(elapsedMs: number): string {
    const entries = this.answered + this.tooLong + this.unanswered
    const parts = [
      `${formatCount(this.answered)} of ${formatCount(entries)} entries sent`,
      `${formatCount(this.accepted)} accepted`,
      `${formatCount(this.rejected)} rejected`,
      ...(this.unanswered === 0 ? [] : [`${formatCount(this.unanswered)} not sent or without a response`]),
      ...(this.repaired === 0 ? [] : [`${formatCount(this.repaired)} repaired because of invalid UTF-8`]),
    ]
    const rate = formatCount(Math.round((this.answered * 1_000) / Math.max(1, elapsedMs)))
    return `${parts.join(', ')}; ${(elapsedMs / 1_000).toFixed(1)} s, ${rate} entries/s.`
  }
}
