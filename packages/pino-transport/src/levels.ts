import type { Level } from '@sluice/client'

/** A level of the API, and whether it says all that the level of the line says. `fatal` says more than `error`. */
export interface LevelReading {
  readonly level: Level
  readonly isExact: boolean
}

const exact = (level: Level): LevelReading => ({ level, isExact: true })
const coarse = (level: Level): LevelReading => ({ level, isExact: false })

/** Names of levels, in lower case: those of pino, and those that are usual as custom levels. */
export const levelsByName: ReadonlyMap<string, LevelReading> = new Map([
  ['log', exact('log')],
  ['trace', coarse('debug')],
  ['verbose', coarse('debug')],
  ['silly', coarse('debug')],
  ['debug', exact('debug')],
  ['info', exact('info')],
  ['notice', coarse('info')],
  ['audit', coarse('info')],
  ['success', exact('success')],
  ['warn', exact('warn')],
  ['warning', exact('warn')],
  ['error', exact('error')],
  ['err', exact('error')],
  ['critical', coarse('error')],
  ['crit', coarse('error')],
  ['alert', coarse('error')],
  ['emerg', coarse('error')],
  ['emergency', coarse('error')],
  ['panic', coarse('error')],
  ['fatal', coarse('error')],
])

/** Where a level begins. pino orders numbers by severity, and its own are the multiples of 10 from 10 to 60. */
const thresholds: readonly (readonly [number, Level])[] = [
  [50, 'error'],
  [40, 'warn'],
  [30, 'info'],
]

/**
 * @param value of a line: a number, or a text if the application has a formatter for levels
 * @param names the names of the logger's levels, by their numbers
 */
export function readLevel(value: unknown, names: Readonly<Record<string, string>>): LevelReading | undefined {
  if (typeof value === 'string') return levelsByName.get(value.trim().toLowerCase())
  if (typeof value !== 'number') return undefined
  const name = names[value]
  const known = name === undefined ? undefined : levelsByName.get(name.toLowerCase())
  return known ?? coarse(thresholds.find(([from]) => value >= from)?.[1] ?? 'debug')
}
