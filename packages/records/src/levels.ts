import { levels } from '@sluice/schema/limits'
import { isPlainObject } from './members.ts'
import { isMongoDate } from './times.ts'

/** A level of the contract. */
export type Level = (typeof levels)[number]

export interface LevelReading {
  readonly level: Level
  /** Whether the level says all that the record says. `FATAL` says more than `error`. */
  readonly isExact: boolean
}

/** The names that loggers give to each level of the contract. All of them are in lower case. */
const names: Readonly<Record<Level, string>> = {
  log: 'log',
  debug:
    'debug trace verbose finest finer fine dbg config silly trc vrb dbug debug1 debug2 debug3 debug4 debug5 ' +
    'trace1 trace2 trace3 trace4 trace5 trace6 trace7 trace8',
  info: 'info information informational notice inf note system audit',
  success: 'success',
  warn: 'warn warning wrn',
  error:
    'error err severe fatal critical crit alert emerg emergency panic dpanic failure fault eror erro ftl pnc ' +
    'assert',
}

/** Names that mean exactly a level of the contract. The others say more, for example that the program ended. */
const synonyms: ReadonlySet<string> = new Set<string>([
  ...levels,
  ...'dbg dbug information inf warning wrn err eror erro'.split(' '),
])

/** Every name of a level that is known, in lower case. */
export const levelsByName: ReadonlyMap<string, Level> = new Map(
  levels.flatMap((level) => names[level].split(' ').map((name): [string, Level] => [name, level])),
)

/** The longest name is far shorter. A long string is not worth a conversion to lower case. */
const NAME_CHARACTERS_MAX = 32

/** The level with this name in any of the common loggers, in upper or lower case. */
export function levelOf(name: string): Level | undefined {
  return levelsByName.get(name) ?? levelsByName.get(normalize(name))
}

/** Whether the name says no more than its level: `WARNING` does not, `FATAL` does. */
export function isSynonym(name: string): boolean {
  return synonyms.has(normalize(name))
}

function normalize(name: string): string {
  return name.length > NAME_CHARACTERS_MAX ? '' : name.trim().toLowerCase()
}

export interface Numbering {
  readonly levels: ReadonlyMap<number, Level>
  /** The numbers that mean exactly a level of the contract. */
  readonly exact: readonly number[]
}

function numbered(first: number, step: number, ...found: readonly Level[]): ReadonlyMap<number, Level> {
  return new Map(found.map((level, at) => [first + at * step, level]))
}

const otelLevels: readonly Level[] = ['debug', 'debug', 'info', 'warn', 'error', 'error']

export const numberings = {
  /** OpenTelemetry: 1 (trace) to 24 (fatal), four for each of its six severities. */
  otel: {
    levels: numbered(1, 1, ...otelLevels.flatMap((level) => [level, level, level, level])),
    exact: [5, 9, 13, 17],
  },
  /** pino and bunyan: 10 (trace) to 60 (fatal). */
  pino: {
    levels: numbered(10, 10, 'debug', 'debug', 'info', 'warn', 'error', 'error'),
    exact: [20, 30, 40, 50],
  },
  /** Python's logging: 10 (debug) to 50 (critical). */
  python: { levels: numbered(10, 10, 'debug', 'info', 'warn', 'error', 'error'), exact: [10, 20, 30, 40] },
  /** Syslog, by RFC 5424: 0 (emergency) to 7 (debug). */
  syslog: {
    levels: numbered(0, 1, 'error', 'error', 'error', 'error', 'warn', 'info', 'info', 'debug'),
    exact: [3, 4, 6, 7],
  },
} as const satisfies Readonly<Record<string, Numbering>>
export type LevelNumbers = keyof typeof numberings

/** @param numbers what a number means under the name of this value */
export function readLevel(value: unknown, numbers: LevelNumbers): LevelReading | undefined {
  const number = typeof value === 'string' && /^ ?\d{1,3}$/.test(value) ? Number(value) : value
  if (typeof number === 'number') {
    const numbering: Numbering = numberings[numbers]
    const level = numbering.levels.get(number)
    return level === undefined ? undefined : { level, isExact: numbering.exact.includes(number) }
  }
  // Loguru: `{"name": "ERROR", "no": 40}`. The object is kept as the original level.
  if (isPlainObject(value) && typeof value['name'] === 'string') {
    const named = levelOf(value['name'])
    return named === undefined ? undefined : { level: named, isExact: false }
  }
  return typeof value === 'string' ? readLevelName(value) : undefined
}

export function readLevelName(name: string): LevelReading | undefined {
  const level = levelOf(name)
  return level === undefined ? undefined : { level, isExact: isSynonym(name) }
}

/** The severities of MongoDB: a letter, and a digit for the verbosity of debug messages. */
export function readMongoLevel({ t, s }: Readonly<Record<string, unknown>>): LevelReading | undefined {
  if (!isMongoDate(t) || typeof s !== 'string' || s.length > 2) return undefined
  const letter = s.charAt(0)
  const level = mongoLevels.get(letter)
  return level === undefined ? undefined : { level, isExact: s !== 'F' && letter !== 'D' }
}
export const mongoLevels: ReadonlyMap<string, Level> = new Map(
  Object.entries({ F: 'error', E: 'error', W: 'warn', I: 'info', D: 'debug' } as const),
)
