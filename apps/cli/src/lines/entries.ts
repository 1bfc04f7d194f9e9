import { entryOfRecord, isPlainObject, type Level, type Members } from '@sluice/records'
import { entryFields, limits } from '@sluice/schema'
import { type LogRecord, rawRecord } from './record-assembler.ts'
import { endsWithTraceback, findStack, isTraceback } from './stack-traces.ts'

export interface EntryDefaults {
  readonly level: Level
  readonly service: string | undefined
  /** The service of records whose format has no name of a program. */
  readonly fallbackService: string | undefined
  readonly environment: string | undefined
}

/**
 * The entries of a record as JSON: one, unless its message is longer than the contract allows. The parts of such a message are
 * entries with the same fields and ascending numbers as `part`.
 */
export function entriesOf(record: LogRecord, defaults: EntryDefaults): string[] {
  try {
    const { record: members } = record.head
    if (members !== undefined) return [entryOfMembers(record, members, defaults)]
    return entriesOfMessage(record, defaults).map((entry) => JSON.stringify(entry))
  } catch (error) {
    // JSON that is nested very deeply can be read, but not be written again.
    if (!(error instanceof RangeError)) throw error
    return entriesOf(rawRecord(record.text, record.firstLine), defaults)
  }
}

function entriesOfMessage(record: LogRecord, defaults: EntryDefaults): Members[] {
  const { head } = record
  const { message, stack } = messageAndStack(record)
  const parts = splitCharacters(message, limits.messageCharactersMax)
  const service = defaults.service ?? atMost(head.service, limits.serviceCharactersMax)
  return parts.map((part, index) => {
    const metadata = { ...head.metadata, ...(parts.length > 1 ? { part: index + 1 } : {}) }
    return {
      timestamp: head.timestamp,
      level: head.level ?? defaults.level,
      message: part,
      service: service ?? defaults.fallbackService,
      environment: defaults.environment,
      pathname: atMost(head.pathname, limits.pathnameCharactersMax),
      stack: index === 0 ? stack : undefined,
      metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    }
  })
}

function atMost(string: string | undefined, charactersMax: number): string | undefined {
  return string !== undefined && string.length <= charactersMax ? string : undefined
}

function entryOfMembers({ more, text }: LogRecord, members: Members, defaults: EntryDefaults): string {
  const entry = entryOfRecord(members, { defaultLevel: defaults.level })
  entry['service'] ??= defaults.service ?? defaults.fallbackService
  entry['environment'] ??= defaults.environment
  if (more.length > 0) {
    const name = findStack(more) === -1 ? 'message' : 'stack'
    const before = entry[name]
    entry[name] = typeof before === 'string' ? [before, ...more].join('\n') : more.join('\n')
  }
  return /^\s*\{/.test(text) && isEntry(members, entry) ? text : JSON.stringify(entry)
}

const fieldNames = [...entryFields].filter((name) => name !== 'metadata')

/** Whether the API makes of the members, as they are, what the entry has. */
function isEntry(members: Members, { metadata = {}, ...fields }: Members): boolean {
  return (
    isPlainObject(members['metadata'] ?? {}) &&
    fieldNames.every((name) => (members[name] ?? undefined) === fields[name]) &&
    Object.keys(members).every(
      (name) => entryFields.has(name) || (metadata as Members)[name] === members[name],
    )
  )
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

/** Characters are code points. */
function splitCharacters(string: string, charactersMax: number): string[] {
  if (string.length <= charactersMax) return [string]
  const characters = Array.from(string)
  const count = Math.ceil(characters.length / charactersMax)
  return Array.from({ length: count }, (_, part) =>
    characters.slice(part * charactersMax, (part + 1) * charactersMax).join(''),
  )
}
