import { escapeControls, escapeJsonControls, type Paint, type Style } from '../terminal.ts'
import type { LogRow } from './log-source.ts'

const levelStyles: Readonly<Partial<Record<string, Style>>> = {
  debug: 'gray',
  log: 'cyan',
  info: 'blue',
  success: 'green',
  warn: 'yellow',
  error: ['bold', 'red'],
}
export function textLines(row: LogRow, paint: Paint, withStack: boolean): string[] {
  const level = escapeControls(row.level).toUpperCase().padEnd('success'.length)
  const first = [
    paint('dim', isoTime(row.timestamp, 3)),
    paint(levelStyles[row.level] ?? 'magenta', level),
    ...(row.service === '' ? [] : [paint('cyan', escapeControls(row.service))]),
    escapeControls(row.message),
    ...(row.metadata_text === '{}' ? [] : [paint('dim', escapeJsonControls(row.metadata_text))]),
  ].join(' ')
  if (!withStack || row.stack === '') return [first]
  const frames = row.stack.trimEnd().split(/\r?\n/)
  return [first, ...frames.map((line) => `    ${paint('dim', escapeControls(line))}`)]
}

/**
 * An entry as one line of JSON, without the newline. Fields have the names that clients send; absent fields are left
 * out. The metadata is printed as it is stored: parsing it would round numbers that JavaScript cannot represent.
 */
export function jsonLine(row: LogRow): string {
  const { id, project_id: projectId, level, service, environment, source } = row
  const { message, url, pathname, stack } = row
  const times = { timestamp: isoTime(row.timestamp, 6), receivedAt: isoTime(row.received_at, 3) }
  const texts = { service, environment, source, message, url, pathname, stack }
  const json = JSON.stringify({ id, projectId, ...times, level, ...texts }, (name, value: unknown) =>
    value === '' && name !== 'message' ? undefined : value,
  )
  return escapeJsonControls(`${json.slice(0, -1)},"metadata":${row.metadata_text}}`)
}

function isoTime(time: string, fractionDigits: number): string {
  return `${time.slice(0, 'YYYY-MM-DD hh:mm:ss.'.length + fractionDigits).replace(' ', 'T')}Z`
}
