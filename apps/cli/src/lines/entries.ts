import { entryOfRecord, type Level, type Members } from '@sluice/records'
import { parseJsonExactly } from '@sluice/rows'
import { limits } from '@sluice/schema'
import { UsageError } from '../errors.ts'
import { parseLine } from './formats.ts'
import { type LogRecord, rawRecord, RecordAssembler } from './record-assembler.ts'
import { endsWithTraceback, findStack, isTraceback } from './stack-traces.ts'
import { TimeReader, type TimeZone, timeZoneOf } from './times.ts'

/** How lines become entries. */
export interface LineOptions {
  readonly defaults: EntryDefaults
  /** Whether each line is a message, whatever it contains. */
  readonly isRaw: boolean
  /** The zone of times without an offset. */
  readonly zone: TimeZone
  readonly nowMs: () => number
}

/** Values for fields that a record does not have. */
export interface EntryDefaults {
  readonly level: Level
  /** The service of all records that do not name one as a member of JSON. */
  readonly service: string | undefined
  /** The service of records whose format has no name of a program. */
  readonly fallbackService: string | undefined
  readonly environment: string | undefined
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

  constructor({ defaults, isRaw, zone, nowMs }: LineOptions) {
    this.#defaults = defaults
    const parser = { times: new TimeReader(zone, nowMs), parseJson }
    this.#assembler = isRaw ? undefined : new RecordAssembler((text) => parseLine(text, parser))
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
    return this.#convert(this.#assembler.push(text, number))
  }

  /** The entries that wait for lines. */
  flush(): SourceEntry[] {
    return this.#convert(this.#assembler?.flush())
  }

  #convert(record: LogRecord | undefined): SourceEntry[] {
    if (record === undefined) return []
    const { firstLine, lastLine } = record
    return entryTexts(record, this.#defaults).map((entry) => ({ entry, firstLine, lastLine }))
  }
}

/** @throws UsageError */
export function requireTimeZone(name: string | undefined): TimeZone {
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

/**
 * The entries of a record as JSON: one, unless its message is longer than the contract allows. The parts of such a message are
 * entries with the same fields and ascending numbers as `part`.
 */
function entryTexts(record: LogRecord, defaults: EntryDefaults): string[] {
  try {
    const { record: members } = record.head
    if (members !== undefined) return [entryOfMembers(record, members, defaults)]
    return entriesOfText(record, defaults).map((entry) => JSON.stringify(entry))
  } catch (error) {
    // JSON that is nested very deeply can be read, but not be written again.
    if (!(error instanceof RangeError)) throw error
    return entryTexts(rawRecord(record.text, record.firstLine), defaults)
  }
}

function entriesOfText(record: LogRecord, defaults: EntryDefaults): Members[] {
  const { timestamp, level = defaults.level, pathname, metadata } = record.head
  const { message, stack } = messageAndStack(record)
  const service = defaults.service ?? atMost(record.head.service, limits.serviceCharactersMax)
  const parts = splitCharacters(message, limits.messageCharactersMax)
  return parts.map((part, index) => ({
    timestamp,
    level,
    message: part,
    service: service ?? defaults.fallbackService,
    environment: defaults.environment,
    pathname: atMost(pathname, limits.pathnameCharactersMax),
    stack: index === 0 ? stack : undefined,
    metadata:
      parts.length > 1
        ? { ...metadata, part: index + 1 }
        : Object.keys(metadata).length > 0
          ? metadata
          : undefined,
  }))
}

function atMost(text: string | undefined, charactersMax: number): string | undefined {
  return text !== undefined && text.length <= charactersMax ? text : undefined
}

/** The entry of a line that is a JSON object, or pairs of keys and values. */
function entryOfMembers({ more, text }: LogRecord, members: Members, defaults: EntryDefaults): string {
  const converted = entryOfRecord(members, { defaultLevel: defaults.level })
  const additions: Members = {}
  if (converted['service'] === undefined || converted['service'] === null)
    additions['service'] = defaults.service ?? defaults.fallbackService
  if (converted['environment'] === undefined || converted['environment'] === null)
    additions['environment'] = defaults.environment
  if (more.length > 0) {
    const name = findStack(more) === -1 ? 'message' : 'stack'
    const before = converted[name]
    additions[name] = typeof before === 'string' ? [before, ...more].join('\n') : more.join('\n')
  }
  const isUnchanged = converted === members && Object.values(additions).every((value) => value === undefined)
  if (isUnchanged && /^\s*\{/.test(text)) return text
  return JSON.stringify({ ...converted, ...additions })
}

function messageAndStack({ head, more }: LogRecord): { message: string; stack?: string } {
  const { message: first } = head
  if (more.length === 0) return { message: first }
  // The line of a traceback says nothing. The last line is the error.
  if (isTraceback(first)) {
    const error = more.findLast((line) => !/^\s/.test(line) && line !== '') ?? first
    return { message: error, stack: [first, ...more].join('\n') }
  }
  const start = endsWithTraceback(first) ? 0 : findStack(more)
  const inMessage = start === -1 ? [...more] : more.slice(0, start)
  while (inMessage.at(-1) === '') inMessage.pop()
  const message = [first, ...inMessage].join('\n')
  return start === -1 ? { message } : { message, stack: more.slice(start).join('\n') }
}

/** Splits a string into parts of at most a number of characters, which are code points. */
function splitCharacters(text: string, charactersMax: number): string[] {
  // A string never has more code points than UTF-16 code units.
  if (text.length <= charactersMax) return [text]
  const parts: string[] = []
  let start = 0
  let count = 0
  for (let at = 0; at < text.length; count += 1) {
    if (count === charactersMax) {
      parts.push(text.slice(start, at))
      start = at
      count = 0
    }
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  }
  return [...parts, text.slice(start)]
}
