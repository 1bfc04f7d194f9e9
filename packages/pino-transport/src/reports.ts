import { writeSync } from 'node:fs'

/** A queue that is full drops entries thousands of times per second. */
const REPORT_INTERVAL_MS = 10_000
/** The reasons of rejections come from the API. A faulty one may give a new one for each entry. */
const REASONS_MAX = 20
const OTHER_REASONS = 'lost for other reasons'

/**
 * Tells operators what happened to entries: numbers and reasons, never what was logged. The first report of a kind is printed at once,
 * further ones are gathered.
 */
export class Reports {
  readonly #print: (text: string) => void
  readonly #monotonicMs: () => number
  /** By their texts: how many entries, and when it was printed. */
  readonly #counts = new Map<string, { entries: number; printedAtMs: number }>()

  constructor(print: (text: string) => void, monotonicMs: () => number) {
    this.#print = print
    this.#monotonicMs = monotonicMs
  }

  /** A problem that an operator has to solve. */
  problem(text: string): void {
    this.#print(text)
  }

  lost(entries: number, reason: string): void {
    if (this.#counts.has(reason) || this.#counts.size < REASONS_MAX - 1) this.#count(entries, reason)
    else this.#count(entries, OTHER_REASONS)
  }

  #count(entries: number, reason: string): void {
    const nowMs = this.#monotonicMs()
    const count = this.#counts.get(reason) ?? { entries: 0, printedAtMs: -Infinity }
    this.#counts.set(reason, count)
    count.entries += entries
    if (nowMs - count.printedAtMs < REPORT_INTERVAL_MS) return
    count.printedAtMs = nowMs
    this.#printCount(reason, count)
  }

  /** Prints what was gathered. */
  end(): void {
    for (const [reason, count] of this.#counts) this.#printCount(reason, count)
  }

  #printCount(reason: string, count: { entries: number }): void {
    if (count.entries > 0)
      this.#print(`${count.entries} log ${count.entries === 1 ? 'entry was' : 'entries were'} ${reason}`)
    count.entries = 0
  }
}

const STDERR = 2

/** Not with console.error: its output passes through the application's thread, which does not print it any more when it ends. */
export function printReport(text: string): void {
  try {
    writeSync(STDERR, `@sluice/pino-transport: ${text}\n`)
  } catch {
    // Closed, or a pipe without a reader.
  }
}
