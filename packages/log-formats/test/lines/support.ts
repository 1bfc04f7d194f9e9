import {
  type AssemblerMemory,
  entriesOf,
  type EntryDefaults,
  LineParser,
  type LogRecord,
  RecordAssembler,
} from '../../src/index.ts'
import { timeZoneOf } from '../../src/times/time-zone.ts'

export const defaults: EntryDefaults = {
  level: 'info',
  service: undefined,
  fallbackService: undefined,
  environment: undefined,
}

export function assembler(nowMs = Date.UTC(2026, 10, 23, 17), memory?: AssemblerMemory): RecordAssembler {
  return new RecordAssembler(
    new LineParser({ zone: timeZoneOf('UTC'), nowMs: () => nowMs, parseJson: JSON.parse }),
    memory,
  )
}

/** The records of a text. A line `<flush>` stands for a pause. */
export function recordsOf(text: string, records = assembler()): LogRecord[] {
  const found: (LogRecord | undefined)[] = []
  let number = 0
  for (const line of text.split('\n')) {
    if (line === '<flush>') found.push(records.flush())
    else found.push(records.push(line, (number += 1)))
  }
  while (records.hasOpen) found.push(records.flush())
  return found.filter((record) => record !== undefined)
}

/** The entries of a text, as the API gets them. */
export function entriesOfText(text: string, options: Partial<EntryDefaults> = {}): unknown[] {
  return recordsOf(text).flatMap((record) =>
    entriesOf(record, { ...defaults, ...options }).map((made) =>
      'text' in made ? (JSON.parse(made.text) as unknown) : made.entry,
    ),
  )
}

/** The day on which the lines without a year are read. */
const nowMs = Date.UTC(2026, 10, 23, 17)

/** What a line says. */
export interface ExpectedLine {
  readonly time?: string
  readonly level?: string
  readonly message: string
  readonly service?: string
  readonly pathname?: string
  readonly metadata?: Record<string, unknown>
}

export function readLine(text: string): ExpectedLine {
  const parser = new LineParser({ zone: timeZoneOf('UTC'), nowMs: () => nowMs, parseJson: JSON.parse })
  const line = parser.parse(text)
  if (line === undefined) return { message: text }
  const { timestamp, level, message, service, pathname, metadata } = line
  return {
    ...(timestamp === undefined ? {} : { time: timestamp }),
    ...(level === undefined ? {} : { level }),
    ...(service === undefined ? {} : { service }),
    ...(pathname === undefined ? {} : { pathname }),
    ...(metadata === undefined ? {} : { metadata }),
    message,
  }
}

/** The time, level and message of a line. */
export function summaryOf(
  text: string,
): [time: string | undefined, level: string | undefined, message: string] {
  const { time, level, message } = readLine(text)
  return [time, level, message]
}
