import { entriesOf as entriesOfRecord, type EntryDefaults } from '../../src/lines/entries.ts'
import { type LogRecord, RecordAssembler } from '../../src/lines/record-assembler.ts'
import { TimeReader } from '../../src/lines/times.ts'

/** The day on which lines without a year are read. */
export const nowMs = Date.UTC(2026, 10, 23, 17)

export const noDefaults: EntryDefaults = {
  level: 'info',
  service: undefined,
  fallbackService: undefined,
  environment: undefined,
}

export const times = new TimeReader('UTC', () => nowMs)

interface Options {
  readonly defaults?: EntryDefaults
  readonly times?: TimeReader | undefined
}

/** The records of a string. A line `<flush>` stands for a pause. */
export function recordsOf(string: string, options: Options = {}): LogRecord[] {
  const records = new RecordAssembler('times' in options ? options.times : times)
  const found = string
    .split('\n')
    .map((line, index) => (line === '<flush>' ? records.flush() : records.push(line, index + 1)))
  return [...found, records.flush()].filter((record) => record !== undefined)
}

/** The entries of a string as JSON. */
export function entryTextsOf(string: string, options: Options = {}): string[] {
  const { defaults = noDefaults } = options
  return recordsOf(string, options).flatMap((record) => entriesOfRecord(record, defaults))
}

export function entriesOf(string: string, options: Options = {}): unknown[] {
  return entryTextsOf(string, options).map((entry) => JSON.parse(entry) as unknown)
}
