import type { Entry } from '@sluice/schema'
import { escapeTsv } from '../../src/row-codec.ts'
import { parseTimestamp } from '../../src/timestamps.ts'
import type { TextPrefix } from './text-prefix.ts'

/** Makes the row of a valid entry without unknown fields. */
export function rowOf(entry: Entry, id: string, { text, receivedAt }: TextPrefix): string {
  const timestamp = typeof entry.timestamp === 'string' ? parseTimestamp(entry.timestamp) : receivedAt
  const { level, environment, source, service, url, pathname, message, stack, metadata } = entry
  const strings = [level, environment, source, service, url, pathname, message, stack].map(
    (value) => value ?? '',
  )
  const columns = [id, timestamp ?? '', ...strings, JSON.stringify(metadata ?? {})]
  return `${text}${columns.map(escapeTsv).join('\t')}\n`
}
