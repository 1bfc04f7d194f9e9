import { assemblerOf, entriesOf as entriesOfRecord, type LineOptions } from '../../src/lines/entries.ts'
import type { LogRecord } from '../../src/lines/record-assembler.ts'
import { TimeReader } from '../../src/lines/times.ts'

/** The day on which lines without a year are read. */
export const nowMs = Date.UTC(2026, 10, 23, 17)

export const noDefaults: LineOptions['defaults'] = {
  level: 'info',
  service: undefined,
  fallbackService: undefined,
  environment: undefined,
}

/** The records of a string. A line `<flush>` stands for a pause. */
export function recordsOf(string: string, options: Partial<LineOptions> = {}): LogRecord[] {
  const records = assemblerOf({
    defaults: noDefaults,
    isRaw: false,
    zone: 'UTC',
    nowMs: () => nowMs,
    ...options,
  })
  const found = string
    .split('\n')
    .map((line, index) => (line === '<flush>' ? records.flush() : records.push(line, index + 1)))
  return [...found, records.flush()].filter((record) => record !== undefined)
}

/** The entries of a string as JSON. */
export function entryTextsOf(string: string, options: Partial<LineOptions> = {}): string[] {
  return recordsOf(string, options).flatMap((record) =>
    entriesOfRecord(record, options.defaults ?? noDefaults),
  )
}

export function entriesOf(text: string, options: Partial<LineOptions> = {}): unknown[] {
  return entryTextsOf(text, options).map((entry) => JSON.parse(entry) as unknown)
}

export const parserOptions = { times: new TimeReader('UTC', () => nowMs), parseJson: JSON.parse }
