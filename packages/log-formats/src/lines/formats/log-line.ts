import { addMember, type Level, type Members } from '@sluice/records'
import type { TimeReader } from '../../times/time-reader.ts'

/** Only requests in access logs are longer, and their messages have them. Four of them fit into the metadata of an entry. */
const VALUE_CHARACTERS_MAX = 8_192

/** What the prefix of a line says, and the rest of the line. A mutable builder: formats fill it in. */
export class LogLine {
  /** ISO 8601 with an offset. */
  timestamp: string | undefined = undefined
  /** Whether the line says which offset its time has. */
  isZoned = false
  level: Level | undefined = undefined
  service: string | undefined = undefined
  pathname: string | undefined = undefined
  message = ''
  /** What the prefix says in addition: thread, logger, process id, host. */
  metadata: Members | undefined = undefined
  /** The fields of a line that is a JSON object, or pairs of keys and values. Then there is no message. */
  record: Members | undefined = undefined
  /** The prefix says that the line belongs to the one before, such as `DETAIL:` of PostgreSQL. */
  continues = false
  /** The message is in the next lines. */
  awaitsMessage = false
  /** There is a level and no time. Lines of stack traces and of other texts look like this, too. */
  isWeak = false
  /** Adds what is not empty, and replaces nothing. What is very long stays only in the message. */
  add(name: string, value: string | number | undefined): void {
    if (value === undefined || value === '' || value === '-') return
    if (typeof value === 'string' && value.length > VALUE_CHARACTERS_MAX) return
    this.metadata ??= {}
    addMember(this.metadata, name, value)
  }
}

/** A line with the time at a position. Undefined if there is no time. */
export function lineWithTime(text: string, at: number, time: TimeReader): LogLine | undefined {
  const timestamp = time.read(text, at)
  if (timestamp === undefined) return undefined
  const line = new LogLine()
  line.timestamp = timestamp
  line.isZoned = time.isZoned
  return line
}
