import { existsSync, readFileSync } from 'node:fs'
import { tally } from './tally.ts'

/** What the processes' logs say that nobody wants to read there. */
export interface LogFindings {
  /** Lines at the level fatal: a process ended by an error that it did not expect. */
  readonly fatal: readonly string[]
  /** How often each message came at the level error. */
  readonly errors: Readonly<Record<string, number>>
  /** The same for lines that are no JSON, a few of them, without their digits: a crash of Node itself would be one. */
  readonly strange: Readonly<Record<string, number>>
}

const FATAL_LEVEL = 60
const ERROR_LEVEL = 50
const STRANGE_KINDS_MAX = 10

/** Reads the logs of API and worker processes, those that were put away for their size included. */
export function scanLogs(files: readonly string[]): LogFindings {
  const lines = files
    .flatMap((file) => [`${file}.1`, file])
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
    .filter((line) => line.trim() !== '')
  return sortLines(lines)
}

/** The same for lines that were read already. */
export function sortLines(lines: readonly string[]): LogFindings {
  const fatal: string[] = []
  const errors: string[] = []
  const strange: string[] = []
  for (const line of lines) {
    const { level, msg } = parse(line)
    // What is indented belongs to the line before it.
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
