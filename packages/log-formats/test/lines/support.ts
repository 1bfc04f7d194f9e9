import { levelOf } from '@sluice/records'
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

/** Words that the entry has as its time, its level, or the name of a field. */
const OTHER_FORM =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|AM|PM|UTC|CET|EST|Europe|Berlin|EE|WW|PHP|node|db|msg|audit|us|0x0)$/
/** Times in other digits than those of the entry, the severities of glog, the priorities of syslog. */
const OTHER_DIGITS = /^(?:\d{1,3}|\d{2}[01]\d[0-3]\d|\d{9,19}|[IWEF]\d{4,8}|4[0-9a-f]{23}|\d\d(?:Nov|T)\w*)$/

/** The words of a line that its entries do not have, neither as text nor as time and level. */
export function lostWordsOf(text: string): string[] {
  const entries = JSON.stringify(entriesOfText(text))
  const digits = entries.replaceAll(/[^\d]/g, '')
  return (text.match(/[\p{L}\p{N}]{2,}/gu) ?? []).filter(
    (word) =>
      !entries.includes(word) &&
      !digits.includes(word) &&
      !OTHER_FORM.test(word) &&
      !OTHER_DIGITS.test(word) &&
      levelOf(word) === undefined,
  )
}
