import { describeFault, type JsonObserver, JsonScanner } from '@sluice/rows'
import { limits } from '@sluice/schema'
import { Problem } from '../problems.ts'
import type { EntryFinder, FoundEntries } from './entry-finder.ts'
import { EntryTracker, type FoundEntry } from './entry-tracker.ts'
import { InvalidLine } from './invalid-line.ts'

/**
 * Finds the entries of newline-delimited JSON: an entry per line, always a batch. Lines end with LF or CRLF, optional for the last one.
 * Blank lines are skipped and not counted. A line that is not JSON becomes an `InvalidLine`.
 */
export class NdjsonEntryFinder implements EntryFinder {
  readonly #body: Buffer
  readonly #entries: (FoundEntry | InvalidLine)[] = []
  readonly #tracker: EntryTracker
  #at = 0
  #line: Line | undefined

  constructor(body: Buffer) {
    this.#body = body
    this.#tracker = new EntryTracker(body)
  }

  step(bytesMax: number): FoundEntries | undefined {
    for (let left = bytesMax; left > 0;) {
      const from = this.#line?.scanner.at ?? this.#at
      if (this.#line === undefined) {
        this.#skipBlanks(left)
        if (this.#at === this.#body.length) return { kind: 'batch', entries: this.#entries }
        if (!isBlank(this.#body[this.#at] ?? 0)) this.#line = this.#beginLine()
        left -= this.#at - from
      } else {
        const { scanner } = this.#line
        scanner.scan(left)
        left -= Math.max(1, scanner.at - from)
        if (scanner.isDone) this.#endLine(this.#line)
      }
    }
    return undefined
  }

  #skipBlanks(bytesMax: number): void {
    const end = Math.min(this.#body.length, this.#at + bytesMax)
    while (this.#at < end && isBlank(this.#body[this.#at] ?? 0)) this.#at += 1
  }

  #beginLine(): Line {
    if (this.#entries.length === limits.entriesPerRequestMax) {
      const detail = `A request may have at most ${limits.entriesPerRequestMax} entries; this one has more lines.`
      throw new Problem('too_many_entries', detail)
    }
    const newline = this.#body.indexOf(NEWLINE, this.#at)
    return new Line(this.#body, this.#at, newline < 0 ? this.#body.length : newline, this.#tracker)
  }

  #endLine({ end, found, fault }: Line): void {
    this.#entries.push(found ?? new InvalidLine(fault))
    this.#at = end
    this.#line = undefined
  }
}

class Line implements JsonObserver {
  /** The members of the entry. */
  readonly depthMax = 1
  readonly end: number
  readonly scanner: JsonScanner
  readonly #body: Buffer
  readonly #start: number
  readonly #tracker: EntryTracker
  #found: FoundEntry | undefined

  constructor(body: Buffer, start: number, end: number, tracker: EntryTracker) {
    this.end = end
    this.scanner = new JsonScanner(body, start, end, this)
    this.#body = body
    this.#start = start
    this.#tracker = tracker
  }

  /** Undefined if the line is not JSON. */
  get found(): FoundEntry | undefined {
    return this.scanner.isInvalid ? undefined : this.#found
  }

  get fault(): string {
    return describeFault(this.#body, this.#start, this.end, this.scanner)
  }

  beginValue(at: number, byte: number, depth: number, waste: number): void {
    if (depth === 0) this.#tracker.begin(at, byte, waste)
    else this.#tracker.beginMember(at, byte, waste)
  }

  name(start: number, end: number): void {
    this.#tracker.name(start, end)
  }

  endValue(end: number, depth: number, waste: number): void {
    if (depth === 0) this.#found = this.#tracker.end(end, waste, this.scanner)
    else this.#tracker.endMember(end, waste, this.scanner.takeDeepest() - depth)
  }
}

const NEWLINE = 0x0a

/** JSON's whitespace: space, tab, line feed, carriage return. */
function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === NEWLINE || byte === 0x0d
}
