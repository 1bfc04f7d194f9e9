import { namesOf, queryColumns } from '@sluice/query-language'
import { escapeControls, escapeJsonControls, formatCount, type Paint, type Style } from '../terminal.ts'
import type { Entry } from './query-client.ts'

export const lineLimits = {
  /** Some lines of a terminal. What is longer hides the entries around it. */
  charactersShown: 500,
  /** The reason of an error, and the code of the program near it. */
  stackLinesShown: 4,
} as const

interface LineStyle {
  readonly paint: Paint
  /** Of times. */
  readonly zone: string
  /** Texts in messages, in any case. */
  readonly highlights: readonly string[]
  readonly fields: readonly string[] | undefined
  readonly charactersMax: number
  readonly stackLinesMax: number
}

const levelStyles: Readonly<Partial<Record<string, Style>>> = {
  debug: 'gray',
  log: 'cyan',
  info: 'blue',
  success: 'green',
  warn: 'yellow',
  error: ['bold', 'red'],
}

/** An entry as lines for people, without newlines. With `fields`, it is one line of their values, with tabs between them. */
export function textLines(entry: Entry, style: LineStyle): string[] {
  const { paint, zone, highlights, fields, charactersMax, stackLinesMax } = style
  const highlighted = new RegExp(highlights.map((text) => RegExp.escape(text)).join('|'), 'giu')
  const shorten = (text: string): string => {
    const left = text.length - charactersMax
    return left <= 0
      ? text
      : `${text.slice(0, charactersMax)} … (${formatCount(left)} characters more: --full)`
  }
  const textOf = (name: string): string => {
    const value = fieldOf(entry, name)
    if (value === undefined) return ''
    if (name === 'timestamp' || name === 'received_at') return zonedTime(entry[name], zone)
    return shorten(
      typeof value === 'string' ? escapeControls(value) : escapeJsonControls(JSON.stringify(value)),
    )
  }
  const painted: Readonly<Record<string, (text: string) => string>> = {
    timestamp: (text) => paint('dim', text),
    level: (text) =>
      paint(levelStyles[entry.level] ?? 'magenta', text.toUpperCase().padEnd('success'.length)),
    service: (text) => paint('cyan', text),
    message: (text) =>
      highlights.length === 0 ? text : text.replace(highlighted, (found) => paint('inverse', found)),
    metadata: (text) => paint('dim', text),
  }
  const names = fields ?? Object.keys(painted)
  const values = names.map((name) => (painted[name] ?? String)(textOf(name)))
  if (fields !== undefined) return [values.join('\t')]
  const stack = textStack(entry['stack'], stackLinesMax)
  return [
    values.filter((value) => value !== '').join(' '),
    ...stack.map((line) => `    ${paint('dim', line)}`),
  ]
}

function textStack(stack: unknown, linesMax: number): string[] {
  if (typeof stack !== 'string' || linesMax === 0) return []
  const lines = stack.trimEnd().split(/\r?\n/).map(escapeControls)
  const left = lines.length - linesMax
  return left <= 1 ? lines : [...lines.slice(0, linesMax), `… ${left} lines more: --stack`]
}

/** An entry, or some of its fields, as one line of JSON, without the newline. */
export function jsonLine(entry: Entry, fields: readonly string[] | undefined): string {
  const object = fields && Object.fromEntries(fields.map((name) => [name, fieldOf(entry, name)]))
  return escapeJsonControls(JSON.stringify(object ?? entry))
}

/** A column, or a value of the metadata. As in a query, a name that is no column is a path. */
function fieldOf(entry: Entry, name: string): unknown {
  if (Object.hasOwn(queryColumns, name) || name === 'metadata') return entry[name]
  return namesOf(name.replace(/^metadata\./, '').split('.'))
    .map((names) => names.reduce(memberOf, entry['metadata']))
    .find((found) => found !== undefined)
}

function memberOf(value: unknown, name: string): unknown {
  const isIn = typeof value === 'object' && value !== null && Object.hasOwn(value, name)
  return isIn ? (value as Readonly<Record<string, unknown>>)[name] : undefined
}

/** A time of the query API with milliseconds, as ISO 8601 in a time zone. */
export function zonedTime(time: string, timeZone: string): string {
  const text = Temporal.Instant.from(time).toString({ timeZone, fractionalSecondDigits: 3 })
  return text.replace('+00:00', 'Z')
}
