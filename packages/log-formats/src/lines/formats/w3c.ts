import { type LineFormat, matchAt } from './format.ts'
import { LogLine } from './log-line.ts'
import { levelOfStatus, readTarget } from './access-log.ts'

const FIELDS = /#Fields:\s+(.{1,2000})$/y
const FIELDS_MAX = 64

/** Whether a line names the fields of the lines after it. */
export const isW3cHeader = (text: string): boolean =>
  text.startsWith('#Fields:') && matchAt(FIELDS, text, 0) !== undefined

const names: Readonly<Record<string, string>> = {
  'c-ip': 'client',
  'cs-method': 'method',
  'cs-uri-query': 'query',
  'cs-username': 'user',
  'cs-version': 'protocol',
  'cs(User-Agent)': 'userAgent',
  'cs(Referer)': 'referrer',
  's-ip': 'server',
  'sc-bytes': 'bytes',
}

/** W3C extended logs of IIS and others. A line that begins with `#Fields:` names the fields of the lines after it. */
export function createW3c(): LineFormat {
  let fields: readonly string[] = []
  return (text, { time }) => {
    const header = matchAt(FIELDS, text, 0)
    if (header !== undefined) fields = (header[1] ?? '').trim().split(/\s+/).slice(0, FIELDS_MAX)
    if (fields.length === 0 || text.startsWith('#')) return undefined
    const values = text.split(text.includes('\t') ? '\t' : ' ')
    const [date, clock] = [values[fields.indexOf('date')], values[fields.indexOf('time')]]
    if (values.length !== fields.length || date === undefined || clock === undefined) return undefined
    const line = new LogLine()
    // The standard says that the times are UTC.
    const dateAndTime = `${date} ${clock}Z`
    line.timestamp = time.read(dateAndTime, 0)
    // A line of another program may have as many words.
    if (line.timestamp === undefined || time.end < dateAndTime.length) return undefined
    for (const [index, field] of fields.entries()) {
      const value = values[index] ?? ''
      if (field === 'date' || field === 'time' || value === '-') continue
      if (field === 'cs-uri-stem') readTarget(value, line)
      else if (field === 'sc-status') {
        line.level = levelOfStatus(value)
        line.add('status', /^\d{3}$/.test(value) ? Number(value) : value)
      } else line.add(names[field] ?? field, value)
    }
    line.message = values
      .filter((_value, index) => fields[index] !== 'date' && fields[index] !== 'time')
      .join(' ')
    return line
  }
}
