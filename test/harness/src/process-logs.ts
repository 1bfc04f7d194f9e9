import { existsSync, readFileSync } from 'node:fs'

/** What should not be in the logs of a process. */
export interface LogFindings {
  /** Lines at level fatal: the process exited because of an unexpected error. */
  readonly fatal: readonly string[]
  readonly errors: Readonly<Record<string, number>>
  /** The same for some of the lines that are not JSON, without their digits. A crash of Node itself writes such lines. */
  readonly strange: Readonly<Record<string, number>>
}

const FATAL_LEVEL = 60
const ERROR_LEVEL = 50
const STRANGE_KINDS_MAX = 10

/** Scans the logs of API and worker processes, rotated files included. */
export function scanLogs(files: readonly string[]): LogFindings {
  const lines = files
    .flatMap((file) => [`${file}.1`, file])
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
    .filter((line) => line.trim() !== '')
  const fatal: string[] = []
  const errors: string[] = []
  const strange: string[] = []
  for (const line of lines) {
    const { level, msg } = parse(line)
    // An indented line continues the line before it.
    if (level === undefined) strange.push(...(/^\s/.test(line) ? [] : [line.replaceAll(/\d+/g, '#')]))
    else if (level >= FATAL_LEVEL) fatal.push(line)
    else if (level >= ERROR_LEVEL) errors.push(msg)
  }
  const kinds = Object.entries(tally(strange)).slice(0, STRANGE_KINDS_MAX)
  return { fatal, errors: tally(errors), strange: Object.fromEntries(kinds) }
}

function parse(line: string): { level: number | undefined; msg: string } {
  try {
    const { level, msg } = JSON.parse(line) as { level?: unknown; msg?: unknown }
    return { level: typeof level === 'number' ? level : undefined, msg: String(msg) }
  } catch {
    return { level: undefined, msg: '' }
  }
}

/** How often each name occurs, the most frequent first. */
export function tally(names: readonly string[]): Record<string, number> {
  const groups = [...Map.groupBy(names, (name) => name)].toSorted(([, a], [, b]) => b.length - a.length)
  return Object.fromEntries(groups.map(([name, members]) => [name, members.length]))
}
