import type { OutgoingEntry, Rejection, SenderEvents } from './entry-sender.ts'
import type { LineRange } from './line-ranges.ts'
import { formatCount, perSecond } from './progress.ts'

/** The first rejections show what is wrong. Thousands more would add nothing. */
const REJECTIONS_SHOWN_MAX = 10

/** Counts the outcomes of the entries, and reports the first rejections. */
export class Tally implements SenderEvents {
  readonly #note: (text: string) => void
  #rejections = 0
  /** Entries with a response. */
  answered = 0
  accepted = 0
  /** Lines and entries too long to be sent. */
  tooLong = 0
  unanswered = 0
  /** The lines of each request without a response. Nothing is sent after a failure, so there are few. */
  readonly unansweredLines: LineRange[] = []
  /** Lines that were not valid UTF-8, and were sent with U+FFFD in place of the invalid bytes. */
  repaired = 0

  constructor(note: (text: string) => void) {
    this.#note = note
  }

  get rejected(): number {
    return this.answered - this.accepted + this.tooLong
  }

  onResponse({ entries, accepted }: { entries: number; accepted: number }): void {
    this.answered += entries
    this.accepted += accepted
  }

  onRejection(origin: string, { path, message }: Pick<Rejection, 'path' | 'message'>): void {
    this.#rejections += 1
    if (this.#rejections > REJECTIONS_SHOWN_MAX) return
    this.#note(`${origin}: ${path === '' ? '' : `${path} `}${message}`)
    if (this.#rejections === REJECTIONS_SHOWN_MAX) this.#note('Further rejections are not shown.')
  }

  onTooLong(origin: string, bytesMax: number): void {
    this.tooLong += 1
    this.onRejection(origin, { path: '', message: `longer than ${formatCount(bytesMax)} bytes, not sent` })
  }

  onUnanswered(entries: readonly OutgoingEntry[]): void {
    this.unanswered += entries.length
    const [first, last] = [entries[0], entries.at(-1)]
    if (first !== undefined && last !== undefined) {
      this.unansweredLines.push({ first: first.firstLine, last: last.lastLine })
    }
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
    const rate = formatCount(perSecond(this.answered, elapsedMs))
    return `${parts.join(', ')}; ${(elapsedMs / 1_000).toFixed(1)} s, ${rate} entries/s.`
  }
}
