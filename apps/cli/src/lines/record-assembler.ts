import { limits } from '@sluice/schema'
import { type LogLine, parseLine } from './formats.ts'
import { isFrame, isHeadline, isPythonException, isTraceback } from './stack-traces.ts'
import type { TimeReader } from './times.ts'

export const recordLimits = {
  /** Message and stack together, in UTF-16 code units: each of them alone is then within its limit. */
  charactersMax: Math.min(limits.messageCharactersMax, limits.stackCharactersMax),
  /** A stack overflow of Java has 1,024 frames. */
  linesMax: 2_000,
} as const

/**
 * Lines without a known format belong to the record before, if other lines of the file have one. With more of them per line with a
 * format, the file is rather prose in which one line looks like a log line.
 */
const LOOSE_LINES_PER_FORMAT_MAX = 50

/** The first line of a record; a line without a known format only has a message. */
type Head = Omit<LogLine, 'format'> & Partial<Pick<LogLine, 'format'>>

/** A record of a log, and the numbers of its lines in the input. */
export interface LogRecord {
  readonly firstLine: number
  lastLine: number
  readonly head: Head
  readonly more: string[]
  readonly text: string
  characters: number
  /** After the last line. They count only if another line follows. */
  blankLines: number
}

function recordOf(head: Head, text: string, number: number): LogRecord {
  const { length: characters } = head.message
  return { firstLine: number, lastLine: number, head, more: [], text, characters, blankLines: 0 }
}

/** A line that is a message, whatever it contains. */
export function rawRecord(line: string, number: number): LogRecord {
  return recordOf({ message: line, metadata: {} }, line, number)
}

/**
 * Makes records of the lines of one file or stream: joins stack traces and other lines that belong to the line before.
 *
 * States: no record is open; or one is open, and the next line is added to it or closes it. A record that was closed because
 * no line came for a while is continued by a record of its own.
 */
export class RecordAssembler {
  readonly #times: TimeReader | undefined
  #last: LogRecord | undefined
  isOpen = false
  #knownLines = 0
  #looseLines = 0
  #hasTimes = false

  /** @param times reads the times of lines. Without it, each line is a message, whatever it contains */
  constructor(times: TimeReader | undefined) {
    this.#times = times
  }

  /** Adds a line. @returns the record before, if this line does not belong to it */
  push(text: string, number: number): LogRecord | undefined {
    const last = this.#last
    if (text.trim() === '') {
      if (last !== undefined && this.isOpen) last.blankLines += 1
      return undefined
    }
    if (this.#times === undefined) return rawRecord(text, number)
    const parsed = parseLine(text, this.#times)
    if (last !== undefined && this.#belongsTo(last, parsed, text)) return this.#continue(last, text, number)
    return this.#begin(parsed, text, number)
  }

  /** Closes the open record, because the input ends or the next line does not come. */
  flush(): LogRecord | undefined {
    const open = this.isOpen ? this.#last : undefined
    this.isOpen = false
    return open
  }

  #belongsTo(record: LogRecord, parsed: LogLine | undefined, text: string): boolean {
    if (parsed?.format.isCrash === true && this.#knownLines > 0) return record.head.level === 'error'
    const { isCrash, isWeak } = parsed?.format ?? { isCrash: true }
    if (isCrash !== true && (isWeak !== true || !this.#hasTimes)) return false
    if (/^\s/.test(text) || isFrame(text)) return true
    const last = record.more.at(-1)
    if (last !== undefined && /^[}\])]{1,10}[,;]?$/.test(text)) return true
    const isInTraceback = isTraceback(record.head.message) || record.more.some(isTraceback)
    if (isInTraceback && last !== undefined && /^\s/.test(last) && isPythonException(text)) return true
    if (record.head.record !== undefined || record.head.format === undefined) return false
    if (isTraceback(text) || isHeadline(text)) return true
    this.#looseLines += 1
    return this.#looseLines <= this.#knownLines * LOOSE_LINES_PER_FORMAT_MAX
  }

  #continue(record: LogRecord, text: string, number: number): LogRecord | undefined {
    const added = [...Array.from({ length: record.blankLines }, () => ''), text]
    const characters = record.characters + added.length + text.length
    const linesBefore = record.more.length + record.blankLines
    const { linesMax, charactersMax } = recordLimits
    if (this.isOpen && linesBefore < linesMax && characters <= charactersMax) {
      record.more.push(...added)
      Object.assign(record, { characters, blankLines: 0, lastLine: number })
      return undefined
    }
    // Lines that come too late or do not fit are a record with what the first line said, and a number.
    const { metadata } = record.head
    const part = Number(metadata['part'] ?? 1) + 1
    const head = { ...record.head, message: text, record: undefined, metadata: { ...metadata, part } }
    return this.#open(recordOf(head, text, number))
  }

  #begin(parsed: LogLine | undefined, text: string, number: number): LogRecord | undefined {
    // Without known lines before it, a crash is a line like others.
    const isText = parsed === undefined || (parsed.format.isCrash === true && this.#knownLines === 0)
    if (isText) return this.#open(rawRecord(text, number))
    if (parsed.format.isCrash === true) {
      // It has no time of its own.
      const { timestamp, service } = this.#last?.head ?? {}
      Object.assign(parsed, { timestamp, service })
    } else this.#knownLines += 1
    this.#hasTimes ||= parsed.timestamp !== undefined
    return this.#open(recordOf(parsed, text, number))
  }

  #open(record: LogRecord): LogRecord | undefined {
    const closed = this.flush()
    this.#last = record
    this.isOpen = true
    return closed
  }
}
