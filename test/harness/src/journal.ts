/**
 * What the client knows about an entry that it sent.
 *
 * Pending → acknowledged (a 202 was read to its end), rejected (4xx, or named as rejected in the response to a batch), refused (5xx or 408) or unknown (the
 * connection broke, or no response arrived in time).
 */
export type Outcome = 'pending' | 'acknowledged' | 'rejected' | 'refused' | 'unknown'

export interface SentEntry {
  readonly number: number
  /** Milliseconds on the journal's clock. */
  readonly sentAtMs: number
  readonly outcome: Outcome
}

/** Every entry that was sent, numbered from 0, with its outcome. */
export class Journal {
  /** The prefix of every entry's message. The entry's number follows it. */
  readonly label: string
  /** How often each status was received, and how often each connection error occurred. */
  readonly answers = new Map<string, number>()
  readonly #now: () => number
  readonly #entries: { sentAtMs: number; outcome: Outcome }[] = []

  /** @param now milliseconds, monotonic */
  constructor(label: string, now: () => number = () => performance.now()) {
    this.label = label
    this.#now = now
  }

  get size(): number {
    return this.#entries.length
  }

  /** Records entries that are about to be sent. @returns their numbers */
  open(count: number): number[] {
    const sentAtMs = this.#now()
    return Array.from({ length: count }, () => this.#entries.push({ sentAtMs, outcome: 'pending' }) - 1)
  }

  settle(numbers: readonly number[], outcome: Exclude<Outcome, 'pending'>): void {
    for (const number of numbers) {
      const entry = this.#entries[number]
      if (entry?.outcome !== 'pending') throw new Error(`entry ${number} is not pending`)
      entry.outcome = outcome
    }
  }

  countAnswer(answer: string): void {
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1)
  }

  message(number: number): string {
    return `${this.label}-${number}`
  }

  entries(): SentEntry[] {
    return this.#entries.map((entry, number) => ({ number, ...entry }))
  }

  count(outcome: Outcome): number {
    return this.#entries.filter((entry) => entry.outcome === outcome).length
  }
}
