import { styleText } from 'node:util'
import { parseObject } from './parse-object.ts'

type Style = Parameters<typeof styleText>[0]

const levels: ReadonlyMap<unknown, readonly [name: string, style: Style]> = new Map([
  [10, ['trace', 'dim']],
  [20, ['debug', 'dim']],
  [30, ['info', 'green']],
  [40, ['warn', 'yellow']],
  [50, ['error', 'red']],
  [60, ['fatal', ['bold', 'red']]],
])
const LEVEL_WIDTH = 5

/** Controls can move the cursor and reprogram the terminal. Texts of servers and clients may be in a line. */
// oxlint-disable-next-line no-control-regex -- it must match control characters, to escape them
const CONTROLS = /[\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu

/**
 * A line of pino for people: local time, level, name, message, and the other fields as `name=value`. The stack of an error follows on
 * lines of its own.
 *
 * @param line JSON with its newline. Another text is returned with its control characters escaped
 */
export function prettyLine(line: string, hasColours: boolean): string {
  const paint = (style: Style, text: string): string =>
    hasColours ? styleText(style, text, { validateStream: false }) : text
  const parsed = parseObject(line)
  if (parsed === undefined) return `${escapeControls(line.trimEnd())}\n`
  const { level, time, name, msg, pid: _pid, hostname: _hostname, err, ...fields } = parsed
  const [levelName, style] = levels.get(level) ?? [String(level), 'dim']
  const head = [
    paint('dim', localTime(time)),
    paint(style, levelName.toUpperCase().padEnd(LEVEL_WIDTH)),
    ...(name === undefined ? [] : [paint('dim', show(name))]),
    typeof msg === 'string' ? escapeControls(msg) : '',
    ...Object.entries(fields).map(
      ([key, value]) => `${paint('dim', `${escapeControls(key)}=`)}${show(value)}`,
    ),
  ]
  return `${head.join(' ')}\n${errorLines(err)
    .map((each) => `    ${paint('dim', each)}\n`)
    .join('')}`
}

function localTime(time: unknown): string {
  const date = new Date(typeof time === 'string' || typeof time === 'number' ? time : Number.NaN)
  if (Number.isNaN(date.getTime())) return String(time)
  const [hours, minutes, seconds] = [date.getHours(), date.getMinutes(), date.getSeconds()]
  return `${digits(hours, 2)}:${digits(minutes, 2)}:${digits(seconds, 2)}.${digits(date.getMilliseconds(), 3)}`
}

function digits(value: number, count: number): string {
  return String(value).padStart(count, '0')
}

/** A text without blanks as it is, and everything else as JSON. */
function show(value: unknown): string {
  if (typeof value === 'string' && /^[\w.:/+@-]+$/.test(value)) return value
  return escapeControls(JSON.stringify(value) ?? '')
}

/** As pino's serializer describes an error. */
function errorLines(error: unknown): string[] {
  if (error === undefined) return []
  const stack =
    typeof error === 'object' && error !== null && 'stack' in error && typeof error.stack === 'string'
      ? error.stack
      : show(error)
  return stack.split('\n').map((each) => escapeControls(each.trimEnd()))
}

function escapeControls(text: string): string {
  return text.replace(CONTROLS, (character) => {
    const code = character.codePointAt(0) ?? 0
    return String.raw`\u${code.toString(16).padStart(4, '0')}`
  })
}
