import {
  type AssemblerMemory,
  entriesOf,
  type EntryDefaults,
  LineParser,
  type LogRecord,
  rawRecord,
  RecordAssembler,
  timeZoneOf,
} from '@sluice/log-formats'
import { parseJsonExactly } from '@sluice/rows'
import { UsageError } from '../errors.ts'

/** How lines become entries. */
export interface LineOptions {
  readonly defaults: EntryDefaults
  /** Whether each line is a message, whatever it contains. */
  readonly isRaw: boolean
  /** The name of the zone of times without an offset; undefined for that of this machine. */
  readonly timeZone: string | undefined
  readonly nowMs: () => number
}

/** An entry as JSON text, and the lines that it was made of. */
export interface SourceEntry {
  readonly entry: string
  readonly firstLine: number
  readonly lastLine: number
}

/** Makes entries of the lines of one source. */
export class SourceEntries {
  readonly #defaults: EntryDefaults
  readonly #assembler: RecordAssembler | undefined

  /** @param memory of the lines before @throws UsageError when there is no such time zone */
  constructor({ defaults, isRaw, timeZone, nowMs }: LineOptions, memory?: AssemblerMemory) {
    this.#defaults = defaults
    if (isRaw) return
    const parser = new LineParser({ zone: requireTimeZone(timeZone), nowMs, parseJson })
    this.#assembler = new RecordAssembler(parser, memory)
  }

  /** The first line that waits for its continuation. */
  get firstWaitingLine(): number | undefined {
    return this.#assembler?.firstOpenLine
  }

  /** What is known of the lines before the first that waits. Undefined if the lines do not depend on each other. */
  get memory(): AssemblerMemory | undefined {
    return this.#assembler?.memory
  }

  /** Whether lines wait for their continuation. */
  get isWaiting(): boolean {
    return this.#assembler?.hasOpen === true
  }

  /**
   * Adds a line.
   *
   * @param number ascends from line to line
   * @returns the entries that are complete now
   */
  push(text: string, number: number): SourceEntry[] {
    if (this.#assembler === undefined) return text.trim() === '' ? [] : this.#convert(rawRecord(text, number))
    const record = this.#assembler.push(text, number)
    return record === undefined ? [] : this.#convert(record)
  }

  /** The entries that wait for lines. */
  flush(): SourceEntry[] {
    const entries: SourceEntry[] = []
    while (this.#assembler?.hasOpen === true) {
      const record = this.#assembler.flush()
      if (record !== undefined) entries.push(...this.#convert(record))
    }
    return entries
  }

  #convert(record: LogRecord): SourceEntry[] {
    const { firstLine, lastLine } = record
    return textsOf(record, this.#defaults).map((entry) => ({ entry, firstLine, lastLine }))
  }
}

function textsOf(record: LogRecord, defaults: EntryDefaults): string[] {
  try {
    return entriesOf(record, defaults).map((made) =>
      'text' in made ? made.text : JSON.stringify(made.entry),
    )
  } catch (error) {
    // JSON that is nested very deeply can be read, but not be written again.
    if (!(error instanceof RangeError) || record.text === undefined) throw error
    return textsOf(rawRecord(record.text, record.firstLine), defaults)
  }
}

/** @throws UsageError */
export function requireTimeZone(name: string | undefined): ReturnType<typeof timeZoneOf> {
  try {
    return timeZoneOf(name ?? new Intl.DateTimeFormat().resolvedOptions().timeZone)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new UsageError(`--timezone must be a time zone such as UTC or Europe/Berlin, not "${name ?? ''}"`)
  }
}

/** Names with an escape, and numbers that JavaScript may be unable to represent: see `parseJsonExactly`. */
const NEEDS_EXACT_PARSER = /\\|\d{16}|\d[eE]/

/** Parses JSON with all digits of numbers. JSON.parse takes a fraction of the time. */
function parseJson(text: string): unknown {
  return NEEDS_EXACT_PARSER.test(text) ? parseJsonExactly(text) : JSON.parse(text)
}
