import type { Level, Members } from '@sluice/records'
import { limits } from '@sluice/schema'
import { LogLine } from './formats/log-line.ts'
import { isTraceback } from './stack-lines.ts'

export const recordLimits = {
  /** Message and stack together, in UTF-16 code units: each of them alone is then within its limit. */
  charactersMax: Math.min(limits.messageCharactersMax, limits.stackCharactersMax),
  /** A stack overflow of Java has 1,024 frames. */
  linesMax: 2_000,
} as const

/** A record of a log, and the numbers of its lines in the input. */
export interface LogRecord {
  readonly firstLine: number
  readonly lastLine: number
  /** The prefix and the message of the first line. */
  readonly head: LogLine
  /** The lines after the first that belong to it. */
  readonly more: readonly string[]
  /** The text of the first line as it was in the input, if the record is this one line. */
  readonly text: string | undefined
}

/** A line that is a message, whatever it contains. */
export function rawRecord(text: string, number: number): LogRecord {
  const head = new LogLine()
  head.message = text
  return { firstLine: number, lastLine: number, head, more: [], text: undefined }
}

/** What a record needs for lines that come later: which of them belong to it, and what they take from it. As JSON. */
export interface RecordMemory {
  readonly timestamp?: string | undefined
  readonly level?: Level | undefined
  readonly service?: string | undefined
  readonly metadata?: Members | undefined
  readonly isFields: boolean
  readonly awaitsMessage: boolean
  readonly hasPrefix: boolean
  readonly stream?: unknown
  /** The beginnings of the lines that matter. */
  readonly message: string
  readonly more: readonly string[]
}

/** Of a line, only its first words show whether it begins a stack trace. */
const MEMORY_CHARACTERS = 64

/** The record that the next lines may belong to. */
export class OpenRecord implements LogRecord {
  readonly firstLine: number
  lastLine: number
  readonly head: LogLine
  readonly more: string[] = []
  /** Whether the first line had a prefix of a known format. */
  readonly hasPrefix: boolean
  /** A stream of a container. Lines of another one do not belong to the record. */
  readonly stream: unknown
  #text: string | undefined
  #characters: number
  #blankLines = 0

  constructor(
    head: LogLine,
    { firstLine, lastLine, text }: { firstLine: number; lastLine: number; text: string | undefined },
    options: { hasPrefix: boolean; stream: unknown },
  ) {
    this.firstLine = firstLine
    this.lastLine = lastLine
    this.head = head
    this.hasPrefix = options.hasPrefix
    this.stream = options.stream
    this.#text = text
    this.#characters = head.message.length
  }

  get text(): string | undefined {
    return this.#text
  }

  /** Blank lines count only if another line follows. */
  addBlank(): void {
    this.#blankLines += 1
  }

  hasRoomFor(text: string): boolean {
    return (
      this.more.length + this.#blankLines < recordLimits.linesMax &&
      this.#characters + this.#blankLines + text.length + 1 <= recordLimits.charactersMax
    )
  }

  add(text: string, number: number): void {
    for (; this.#blankLines > 0; this.#blankLines -= 1) this.#append('')
    this.#append(text)
    this.lastLine = number
    this.#text = undefined
  }

  #append(text: string): void {
    this.more.push(text)
    this.#characters += text.length + 1
  }

  /** A record for the lines that come too late or do not fit: with what the prefix said, and a number. */
  continuation(text: string, number: number): OpenRecord {
    const head = new LogLine()
    const { timestamp, level, service, metadata } = this.head
    Object.assign(head, { timestamp, level, service })
    head.metadata = { ...metadata }
    const part = metadata?.['part']
    head.metadata['part'] = (typeof part === 'number' ? part : 1) + 1
    head.message = text
    return new OpenRecord(
      head,
      { firstLine: number, lastLine: number, text: undefined },
      { hasPrefix: this.hasPrefix, stream: this.stream },
    )
  }

  get memory(): RecordMemory {
    const { timestamp, level, service, metadata, awaitsMessage, message, record } = this.head
    const last = this.more.at(-1)
    const lines = [last === undefined ? undefined : this.more.find(isTraceback), last]
    return {
      timestamp,
      level,
      service,
      metadata,
      isFields: record !== undefined,
      awaitsMessage,
      hasPrefix: this.hasPrefix,
      stream: this.stream,
      message: message.slice(0, MEMORY_CHARACTERS),
      more: lines.flatMap((line) => (line === undefined ? [] : [line.slice(0, MEMORY_CHARACTERS)])),
    }
  }

  static fromMemory({ hasPrefix, stream, isFields, more, ...fields }: RecordMemory): OpenRecord {
    const head = Object.assign(new LogLine(), fields, { record: isFields ? {} : undefined })
    const record = new OpenRecord(head, { firstLine: 0, lastLine: 0, text: undefined }, { hasPrefix, stream })
    record.more.push(...more)
    return record
  }
}
