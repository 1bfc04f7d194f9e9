import { type LineOptions, SourceEntries } from '../../src/lines/entries.ts'
import { parseLine } from '../../src/lines/formats.ts'
import { type LogRecord, RecordAssembler } from '../../src/lines/record-assembler.ts'
import { TimeReader, timeZoneOf } from '../../src/lines/times.ts'

/** The day on which lines without a year are read. */
export const nowMs = Date.UTC(2026, 10, 23, 17)

export const noDefaults: LineOptions['defaults'] = {
  level: 'info',
  service: undefined,
  fallbackService: undefined,
  environment: undefined,
}

export function sourceEntries(options: Partial<LineOptions> = {}): SourceEntries {
  return new SourceEntries({
    defaults: noDefaults,
    isRaw: false,
    zone: timeZoneOf('UTC'),
    nowMs: () => nowMs,
    ...options,
  })
}

/** The entries of a text as JSON. A line `<flush>` stands for a pause. */
export function entryTextsOf(text: string, options: Partial<LineOptions> = {}): string[] {
  const entries = sourceEntries(options)
  const made = text
    .split('\n')
    .flatMap((line, index) => (line === '<flush>' ? entries.flush() : entries.push(line, index + 1)))
  return [...made, ...entries.flush()].map(({ entry }) => entry)
}

export function entriesOf(text: string, options: Partial<LineOptions> = {}): unknown[] {
  return entryTextsOf(text, options).map((entry) => JSON.parse(entry) as unknown)
}

/** The records of a text. */
export function recordsOf(text: string): LogRecord[] {
  const options = { times: new TimeReader(timeZoneOf('UTC'), () => nowMs), parseJson: JSON.parse }
  const records = new RecordAssembler((line) => parseLine(line, options))
  const found = text.split('\n').map((line, index) => records.push(line, index + 1))
  return [...found, records.flush()].filter((record) => record !== undefined)
}
