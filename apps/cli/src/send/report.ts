import type { Output } from '../context.ts'
import { escapeControls, formatCount } from '../terminal.ts'
import type { LineRange } from './line-ranges.ts'
import type { OutgoingEntry } from './sender.ts'

/** The first rejections show what is wrong. Thousands more would add nothing. */
const REJECTIONS_SHOWN_MAX = 10
const CLEAR_LINE = '\r\u001B[2K'

/** Counts the outcomes of lines and entries. Prints the first rejections and, on a terminal, a line with the counts below them. */
export class SendReport {
  readonly #stderr: Output
  #rejections = 0
  /** Lines of the whole input that were read, the skipped ones included. */
  lines = 0
  repaired = 0
  answered = 0
  accepted = 0
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

  get #counts(): string {
    return `${formatCount(this.accepted)} accepted, ${formatCount(this.rejected)} rejected`
  }

  onAnswered(entries: number, accepted: number): void {
    this.answered += entries
    this.accepted += accepted
    if (this.#stderr.isTerminal) this.#write('')
  }

  end(): void {
    if (this.#stderr.isTerminal) void this.#stderr.write(CLEAR_LINE)
  }

  /** Prints a line that stays. It may be untrusted: it is made safe to print. */
  note(line: string): void {
    this.#write(`${escapeControls(line)}\n`)
  }

  #write(note: string): void {
    void this.#stderr.write(this.#stderr.isTerminal ? `${CLEAR_LINE}${note}${this.#counts}` : note)
  }

  onRejection(origin: string, reason: string): void {
    if (++this.#rejections > REJECTIONS_SHOWN_MAX) return
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
    this.unansweredLines.push({ first: first.first, last: last.last })
  }

  summary(elapsedMs: number): string {
    const entries = this.answered + this.tooLong + this.unanswered
    const parts = [
      `${formatCount(this.answered)} of ${formatCount(entries)} entries sent, ${this.#counts}`,
      ...(this.unanswered === 0 ? [] : [`${formatCount(this.unanswered)} not sent or without a response`]),
      ...(this.repaired === 0 ? [] : [`${formatCount(this.repaired)} repaired because of invalid UTF-8`]),
    ]
    const rate = formatCount(Math.round((this.answered * 1_000) / Math.max(1, elapsedMs)))
    return `${parts.join(', ')}; ${(elapsedMs / 1_000).toFixed(1)} s, ${rate} entries/s.`
  }
}
