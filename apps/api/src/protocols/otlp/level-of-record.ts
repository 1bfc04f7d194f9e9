import type { Entry } from '@sluice/schema'

type Level = Entry['level']

/** The range of OTLP's numbers. */
const SEVERITY_MIN = 1
const SEVERITY_MAX = 24

/** The first number of each group of four that begins a level, and the number that stands for the level itself. */
const severities: readonly { readonly from: number; readonly usual: number; readonly level: Level }[] = [
  { from: 17, usual: 17, level: 'error' },
  { from: 13, usual: 13, level: 'warn' },
  { from: 9, usual: 9, level: 'info' },
  { from: SEVERITY_MIN, usual: 5, level: 'debug' },
]

/** The names that loggers have for a level, in lower case. */
const levelsByName: Readonly<Record<Level, readonly string[]>> = {
  log: ['log'],
  debug: ['debug', 'dbg', 'trace', 'verbose', 'fine', 'finer', 'finest'],
  info: ['info', 'information', 'informational', 'notice'],
  success: ['success'],
  warn: ['warn', 'warning'],
  error: ['error', 'err', 'critical', 'crit', 'alert', 'emergency', 'emerg', 'fatal', 'panic', 'severe'],
}
const nameLevels: ReadonlyMap<string, Level> = new Map(
  Object.entries(levelsByName).flatMap(([level, names]) => names.map((name) => [name, level as Level])),
)

/** The level of a record, and the parts of its severity that say more than the level. */
export interface Severity {
  readonly level: Level
  readonly severityNumber: number | undefined
  readonly severityText: string | undefined
}

export function severityOf(number: number, text: string): Severity {
  const isKnown = number >= SEVERITY_MIN && number <= SEVERITY_MAX
  const known = isKnown ? severities.find(({ from }) => number >= from) : undefined
  const name = text.toLowerCase()
  const level = known?.level ?? nameLevels.get(name) ?? 'log'
  return {
    level,
    severityNumber: number === 0 || number === known?.usual ? undefined : number,
    severityText: text === '' || name === level ? undefined : text,
  }
}
