import { levelOf, setMember } from '@sluice/records'
import type { LineParser } from './line-parser.ts'
import { LogLine } from './formats/log-line.ts'
import { type LogRecord, OpenRecord, type RecordMemory, recordLimits } from './open-record.ts'
import { isCrash, isFrame, isHeadline, isPythonException, isTraceback } from './stack-lines.ts'
import { unwrapCompose, type UnwrappedLine, type Wrapper } from './unwrapper.ts'

/**
 * Lines without a prefix belong to the record before, if other lines of the file have prefixes. With more of them per line
 * with a prefix, the file is rather a text in which one line looks like a log line.
 */
const LOOSE_LINES_PER_PREFIX_MAX = 50

/** What an assembler knows of the lines before, for one that continues in the middle of the same file. As JSON. */
export interface AssemblerMemory {
  readonly prefixes: number
  readonly looseLines: number
  readonly hasTimes: boolean
  readonly isCompose: boolean
  readonly header?: string | undefined
  /** The record before. */
  readonly before?: RecordMemory | undefined
}

/** A part of a line that its container runtime has broken. */
interface Parts {
  readonly firstLine: number
  readonly lastLine: number
  readonly text: string
  readonly wrapper: Wrapper | undefined
}

/**
 * Makes records of the lines of one file or stream: joins stack traces and other lines that belong to the line before.
 *
 * States: no record is open; or one is open, and the next line is added to it or closes it. A record that was closed because
 * no line came for a while is continued by a record of its own.
 */
export class RecordAssembler {
  readonly #parser: LineParser
  #open: OpenRecord | undefined
  /** The last record, if it was closed by `flush`. */
  #flushed: OpenRecord | undefined
  readonly #parts = new Map<unknown, Parts>()
  #prefixes = 0
  #looseLines = 0
  #hasTimes = false
  #isCompose = false
  /** What was known before the first line that waits. */
  #memoryOfWaiting: AssemblerMemory | undefined

  /** @param memory of the lines before, if the first line is not the first of the file */
  constructor(parser: LineParser, memory?: AssemblerMemory) {
    this.#parser = parser
    if (memory === undefined) return
    this.#prefixes = memory.prefixes
    this.#looseLines = memory.looseLines
    this.#hasTimes = memory.hasTimes
    this.#isCompose = memory.isCompose
    if (memory.header !== undefined) parser.parse(memory.header)
    if (memory.before !== undefined) this.#flushed = OpenRecord.fromMemory(memory.before)
  }

  /**
   * What another assembler must know to make the same records of the lines from `firstOpenLine` on, or of the lines after the last one
   * if none waits.
   */
  get memory(): AssemblerMemory {
    return (this.hasOpen ? this.#memoryOfWaiting : undefined) ?? this.#remember(this.#flushed)
  }

  /** Whether `flush` would return a record. */
  get hasOpen(): boolean {
    return this.#open !== undefined || this.#parts.size > 0
  }

  /** The first line of what waits for more lines. */
  get firstOpenLine(): number | undefined {
    const lines = [...this.#parts.values()].map(({ firstLine }) => firstLine)
    if (this.#open !== undefined) lines.push(this.#open.firstLine)
    return lines.length === 0 ? undefined : Math.min(...lines)
  }

  /**
   * Adds a line.
   *
   * @param number of the line in the whole input; ascends
   * @returns the record before, if this line does not belong to it
   */
  push(text: string, number: number): LogRecord | undefined {
    if (text.trim() === '') {
      this.#open?.addBlank()
      return undefined
    }
    const unwrapped = this.#unwrap(text)
    const joined = this.#joinParts(unwrapped, number)
    if (joined === undefined) return undefined
    const { wrapper } = joined
    const looseLinesBefore = this.#looseLines
    const parsed = this.#parser.parse(joined.text)
    const stream = wrapper?.metadata['stream']
    const before = this.#open ?? this.#flushed
    if (parsed === undefined && this.#isCrash(joined.text, before, stream))
      return this.#begin(crashLine(joined.text, before), joined, undefined, before)
    if (before !== undefined && before.stream === stream) {
      const addition = this.#additionTo(before, parsed, joined.text)
      if (addition !== undefined) return this.#continue(before, addition, number, looseLinesBefore)
    }
    const isWhole = wrapper === undefined && joined.firstLine === number
    return this.#begin(parsed, joined, isWhole ? text : undefined)
  }

  /** Closes the open record, because the input ends or the next line does not come. */
  flush(): LogRecord | undefined {
    const [stream, parts] = this.#parts.entries().next().value ?? []
    if (parts !== undefined && this.#open === undefined) {
      this.#parts.delete(stream)
      this.#begin(this.#parser.parse(parts.text), parts, undefined)
    }
    const open = this.#open
    if (open !== undefined) this.#flushed = open
    this.#open = undefined
    return open
  }

  #unwrap(text: string): UnwrappedLine {
    if (this.#isCompose) return unwrapCompose(text) ?? this.#parser.unwrap(text)
    const compose = unwrapCompose(text)
    if (compose === undefined) return this.#parser.unwrap(text)
    // Other texts have bars, too. Only a line of a known format behind it shows that this is a container's.
    const parsed = this.#parser.parse(compose.text)
    const isCompose = compose.wrapper?.timestamp !== undefined || (parsed !== undefined && !parsed.isWeak)
    this.#isCompose = isCompose && levelOf(compose.wrapper?.service ?? '') === undefined
    return this.#isCompose ? compose : this.#parser.unwrap(text)
  }

  /** @returns undefined until the line is complete */
  #joinParts({ text, wrapper, isPartial }: UnwrappedLine, number: number): Parts | undefined {
    const stream = wrapper?.metadata['stream']
    const before = this.#parts.get(stream)
    const joined: Parts = {
      firstLine: before?.firstLine ?? number,
      lastLine: number,
      text: `${before?.text ?? ''}${text}`,
      wrapper: before?.wrapper ?? wrapper,
    }
    if (before === undefined && !isPartial) return joined
    this.#parts.delete(stream)
    if (!isPartial || joined.text.length >= recordLimits.charactersMax) return joined
    if (!this.hasOpen) this.#memoryOfWaiting = this.#remember(this.#flushed)
    this.#parts.set(stream, joined)
    return undefined
  }

  /** The text to add to a record, if the line belongs to it. */
  #additionTo(record: OpenRecord, parsed: LogLine | undefined, text: string): string | undefined {
    if (parsed?.continues === true) return parsed.message
    if (record.head.awaitsMessage && record.more.length === 0 && parsed?.timestamp === undefined) return text
    if (parsed !== undefined && !(parsed.isWeak && this.#hasTimes)) return undefined
    return this.#belongsTo(record, text) ? text : undefined
  }

  /** Whether a line tells of a crash, which is no part of the record before: that is no error. */
  #isCrash(text: string, before: OpenRecord | undefined, stream: unknown): boolean {
    if (this.#prefixes === 0 || !isCrash(text)) return false
    return before === undefined || before.stream !== stream || before.head.level !== 'error'
  }

  #belongsTo(record: OpenRecord, text: string): boolean {
    if (/^\s/.test(text) || isFrame(text)) return true
    const last = record.more.at(-1)
    if (last !== undefined && /^[}\])]{1,10}[,;]?$/.test(text)) return true
    const isInTraceback = isTraceback(record.head.message) || record.more.some(isTraceback)
    if (isInTraceback && last !== undefined && /^\s/.test(last) && isPythonException(text)) return true
    if (record.head.record !== undefined || !record.hasPrefix) return false
    if (isTraceback(text) || isHeadline(text)) return true
    this.#looseLines += 1
    return this.#looseLines <= this.#prefixes * LOOSE_LINES_PER_PREFIX_MAX
  }

  #continue(
    record: OpenRecord,
    addition: string,
    number: number,
    looseLinesBefore: number,
  ): LogRecord | undefined {
    if (record === this.#open && record.hasRoomFor(addition)) {
      record.add(addition, number)
      return undefined
    }
    this.#memoryOfWaiting = { ...this.#remember(record), looseLines: looseLinesBefore }
    const closed = this.#open
    this.#open = record.continuation(addition, number)
    this.#flushed = undefined
    return closed
  }

  #remember(before: OpenRecord | undefined): AssemblerMemory {
    return {
      prefixes: this.#prefixes,
      looseLines: this.#looseLines,
      hasTimes: this.#hasTimes,
      isCompose: this.#isCompose,
      header: this.#parser.header,
      before: before?.memory,
    }
  }

  #begin(
    parsed: LogLine | undefined,
    { text, firstLine, lastLine, wrapper }: Parts,
    whole: string | undefined,
    before?: OpenRecord,
  ): LogRecord | undefined {
    this.#memoryOfWaiting = this.#remember(before)
    const head = parsed ?? new LogLine()
    if (parsed === undefined) head.message = text
    else {
      this.#prefixes += 1
      this.#hasTimes ||= parsed.timestamp !== undefined
    }
    if (wrapper !== undefined) applyWrapper(head, wrapper)
    const closed = this.#open
    this.#flushed = undefined
    this.#open = new OpenRecord(
      head,
      { firstLine, lastLine, text: whole },
      { hasPrefix: parsed !== undefined, stream: wrapper?.metadata['stream'] },
    )
    return closed
  }
}

/** A crash has no time of its own: it follows the record before. */
function crashLine(text: string, before: OpenRecord | undefined): LogLine {
  const line = new LogLine()
  line.level = 'error'
  line.message = text
  line.timestamp = before?.head.timestamp
  line.service = before?.head.service
  return line
}

/** A time that names its offset is that of the program. Any other one is less certain than that of the wrapper. */
function applyWrapper(head: LogLine, { timestamp, service, metadata }: Wrapper): void {
  if (!head.isZoned) head.timestamp = timestamp ?? head.timestamp
  head.service ??= service
  const names = Object.keys(metadata)
  if (names.length === 0) return
  head.metadata ??= {}
  for (const name of names) {
    if (!Object.hasOwn(head.metadata, name)) setMember(head.metadata, name, metadata[name])
  }
}
