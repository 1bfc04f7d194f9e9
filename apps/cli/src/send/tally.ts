import type { Rejection } from './answers.ts'
import type { SenderEvents } from './batch-sender.ts'
import { count, perSecond } from './progress.ts'

/** The first ones say what is wrong; thousands of the same say nothing more. */
const REASONS_SHOWN_MAX = 10

/** Counts what became of the lines, and says the first reasons why some were not taken. */
export class Tally implements SenderEvents {
  readonly #note: (text: string) => void
  #reasons = 0
  /** Lines that an answer speaks of. */
  answered = 0
  accepted = 0
  /** Lines too long to be sent. */
  tooLong = 0
  unanswered = 0
  /** Lines that were not UTF-8: sent, with U+FFFD in place of what could not be read. */
  repaired = 0

  constructor(note: (text: string) => void) {
    this.#note = note
  }

  get rejected(): number {
    return this.answered - this.accepted + this.tooLong
  }

  onTaken({ entries, accepted }: { entries: number; accepted: number }): void {
    this.answered += entries
    this.accepted += accepted
  }

  onRejection(origin: string, { path, message }: Pick<Rejection, 'path' | 'message'>): void {
    this.#reasons += 1
    if (this.#reasons > REASONS_SHOWN_MAX) return
    this.#note(`${origin}: ${path === '' ? '' : `${path} `}${message}`)
    if (this.#reasons === REASONS_SHOWN_MAX) this.#note('Further reasons are not shown.')
  }

  onTooLong(origin: string, bytesMax: number): void {
    this.tooLong += 1
    this.onRejection(origin, { path: '', message: `longer than ${count(bytesMax)} bytes, not sent` })
  }

  onUnanswered(entries: number): void {
    this.unanswered += entries
  }

  summary(elapsedMs: number): string {
    const lines = this.answered + this.tooLong + this.unanswered
    const parts = [
      `${count(this.answered)} of ${count(lines)} lines sent`,
      `${count(this.accepted)} accepted`,
      `${count(this.rejected)} rejected`,
      ...(this.unanswered === 0 ? [] : [`${count(this.unanswered)} not sent or without an answer`]),
      ...(this.repaired === 0 ? [] : [`${count(this.repaired)} were not UTF-8 and were repaired`]),
    ]
    const rate = count(perSecond(this.answered, elapsedMs))
    return `${parts.join(', ')}; ${(elapsedMs / 1_000).toFixed(1)} s, ${rate} lines/s.`
  }
}
