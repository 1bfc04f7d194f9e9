import { entryOfRecord, isPlainObject, type Level, levelOf, type Members, setMember } from '@sluice/records'
import { entryFields, limits } from '@sluice/schema'
import { setLevel } from './formats/level-words.ts'
import type { LogLine } from './formats/log-line.ts'
import type { LogRecord } from './open-record.ts'
import { endsWithTraceback, findStack, isTraceback } from './stack-lines.ts'

/** Values for fields that a record does not have. */
export interface EntryDefaults {
  readonly level: Level
  /** The service of all records that do not name one as a field of JSON. */
  readonly service: string | undefined
  /** The service of records whose format has no name of a program. */
  readonly fallbackService: string | undefined
  readonly environment: string | undefined
}

/** An entry of the contract, or its JSON text if that is a line of the input. */
export type LogEntry = { readonly entry: Members } | { readonly text: string }

/**
 * Makes the entries of a record: one, unless its message is longer than the contract allows. The parts of such a message are
 * entries with the same fields and ascending numbers as `part`.
 */
export function entriesOf(record: LogRecord, defaults: EntryDefaults): LogEntry[] {
  if (record.head.record !== undefined) return [entryOfFields(record, record.head.record, defaults)]
  const { message, stack } = textsOf(record)
  const { head } = record
  const service = defaults.service ?? usableService(head) ?? defaults.fallbackService
  const parts = splitText(message, limits.messageCharactersMax)
  return parts.map((part, index) => {
    const entry: Members = {}
    if (head.timestamp !== undefined) entry['timestamp'] = head.timestamp
    entry['level'] = head.level ?? defaults.level
    entry['message'] = part
    if (service !== undefined) entry['service'] = service
    if (defaults.environment !== undefined) entry['environment'] = defaults.environment
    if (usablePathname(head) !== undefined) entry['pathname'] = head.pathname
    if (stack !== undefined && index === 0) entry['stack'] = stack
    if (parts.length > 1) entry['metadata'] = { ...head.metadata, part: index + 1 }
    else if (head.metadata !== undefined) entry['metadata'] = head.metadata
    return { entry }
  })
}

function usableService({ service }: LogLine): string | undefined {
  return service !== undefined && service.length <= limits.serviceCharactersMax ? service : undefined
}

/** A longer path is still in the message. */
function usablePathname({ pathname }: LogLine): string | undefined {
  return pathname !== undefined && pathname.length <= limits.pathnameCharactersMax ? pathname : undefined
}

/** The entry of a line that is a JSON object, or pairs of keys and values. */
function entryOfFields(record: LogRecord, fields: Members, defaults: EntryDefaults): LogEntry {
  const { head, more, text } = record
  const converted = entryOfRecord(fields, { defaultLevel: defaults.level })
  const additions: Members = {}
  const addMissing = (name: string, value: string | undefined): void => {
    const given = converted[name]
    if (value !== undefined && (given === undefined || given === null)) additions[name] = value
  }
  addMissing('timestamp', head.timestamp)
  addMissing('service', defaults.service ?? head.service ?? defaults.fallbackService)
  addMissing('environment', defaults.environment)
  const metadata = mergedMetadata(converted, head.metadata)
  if (metadata !== undefined) additions['metadata'] = metadata
  if (more.length > 0) {
    const name = findStack(more) === -1 ? 'message' : 'stack'
    const before = converted[name]
    additions[name] = typeof before === 'string' ? [before, ...more].join('\n') : more.join('\n')
  }
  const isUnchanged = converted === fields && Object.keys(additions).length === 0
  if (isUnchanged && text !== undefined && /^\s*\{/.test(text)) return { text }
  return { entry: { ...converted, ...additions } }
}

/**
 * Adds to the metadata of an entry what it does not have itself, in its metadata or as an unknown field, which becomes metadata too.
 *
 * @returns undefined if there is nothing to add
 */
function mergedMetadata(entry: Members, added: Members | undefined): Members | undefined {
  if (added === undefined) return undefined
  const own = entry['metadata']
  const merged: Members = isPlainObject(own) ? { ...own } : {}
  for (const name of Object.keys(added)) {
    const isUnknownField = Object.hasOwn(entry, name) && !entryFields.has(name)
    if (!isUnknownField && !Object.hasOwn(merged, name)) setMember(merged, name, added[name])
  }
  return merged
}

function textsOf({ head, more }: LogRecord): { message: string; stack: string | undefined } {
  if (more.length === 0) return { message: head.message, stack: undefined }
  if (head.awaitsMessage) return textsAfterHead(head, more)
  // The line of a traceback says nothing. The last line is the error.
  if (isTraceback(head.message)) {
    const error = more.findLast((line) => !/^\s/.test(line) && line !== '') ?? head.message
    return { message: error, stack: [head.message, ...more].join('\n') }
  }
  return splitStack(head.message, more, endsWithTraceback(head.message) ? 0 : findStack(more))
}

function splitStack(
  first: string,
  more: readonly string[],
  start: number,
): { message: string; stack: string | undefined } {
  const inMessage = start === -1 ? [...more] : more.slice(0, start)
  while (inMessage.at(-1) === '') inMessage.pop()
  return {
    message: [first, ...inMessage].join('\n'),
    stack: start === -1 ? undefined : more.slice(start).join('\n'),
  }
}

/** Java's logging: `SEVERE: message`. */
const LABEL = /^([A-Z]{4,7}|[A-Z][a-z]{3,6}): /

/** The message of a format that has it in the line after the prefix. */
function textsAfterHead(
  head: LogLine,
  more: readonly string[],
): { message: string; stack: string | undefined } {
  const [first = '', ...rest] = more
  const [label, word = ''] = LABEL.exec(first) ?? ['']
  const level = levelOf(word)
  if (level !== undefined) setLevel(head, level, word)
  const message = (level === undefined ? first : first.slice(label.length)).trimStart()
  return splitStack(message, rest, findStack(rest))
}

/** Splits a text into parts of at most a number of characters, which are code points. */
function splitText(text: string, charactersMax: number): string[] {
  // A text never has more code points than UTF-16 code units.
  if (text.length <= charactersMax) return [text]
  const parts: string[] = []
  let start = 0
  let count = 0
  let at = 0
  while (at < text.length) {
    if (count === charactersMax) {
      parts.push(text.slice(start, at))
      start = at
      count = 0
    }
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
    count += 1
  }
  parts.push(text.slice(start))
  return parts
}
